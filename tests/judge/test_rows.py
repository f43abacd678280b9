"""Faults of losses that show only between rows or tokens, and what merely looks like them."""

from textwrap import indent

import pytest
from tests.support.checking import check_text, strong

LOSS = '''\
import numpy as np

{before}
def grpo_loss(new_logps, old_logps, advantages, mask, {clip}):
    """Clipped surrogate loss to minimise."""
    A, n = advantages[:, None], np.maximum(mask.sum(1, keepdims=True), 1)
    log_ratio = (new_logps - old_logps) * mask
{body}
'''
CLIP = "np.clip(ratio, 1 - clip_eps, 1 + clip_eps)"
TERM = f"s = np.minimum(ratio * A, {CLIP} * A)\n"
TOKEN_MEAN = "return -(s * mask).sum() / max(mask.sum(), 1)"
ADVANTAGES = """
def group_advantages(rewards, group_size):
    g = np.asarray(rewards, dtype=float).reshape(-1, group_size)
    return ((g - g.mean(1, keepdims=True)) / {scale}).ravel()

"""
Z_SCORES = ADVANTAGES.format(scale="(g.std(1, keepdims=True) + 1e-6)")
CENTRED = ADVANTAGES.format(scale="1.0")


def codes(folder, body, before="", clip="clip_eps=0.2"):
    text = LOSS.format(body=indent(body, "    "), before=before, clip=clip)
    return strong(check_text(folder, text))


@pytest.mark.parametrize(
    ("ratio", "end", "expected"),
    [
        ("log_ratio", TOKEN_MEAN, []),
        ("log_ratio.sum(1, keepdims=True)", TOKEN_MEAN, ["SUR010"]),
        ("log_ratio.sum(1, keepdims=True)", "return -(s * mask).sum() / len(mask)", ["SUR010"]),
        ("log_ratio.sum(1, keepdims=True)", "return -s.mean()", []),  # RLOO
        ("log_ratio.sum(1, keepdims=True) / n", "return -s.mean()", []),  # GSPO
        ("log_ratio.sum(1, keepdims=True) / n", TOKEN_MEAN, []),
        ("log_ratio.sum(1, keepdims=True) / n", "return -(s * n).mean()", []),  # LUSPO
        ("log_ratio.sum(1, keepdims=True) / n", "return -(s * n * mask).sum() / 8", ["SUR011"]),
        ("log_ratio", "row = -(s * mask).sum(1, keepdims=True)\nreturn (row * mask).sum() / 8",
         ["SUR011"]),
        ("log_ratio", "row = -(s * mask).sum(1, keepdims=True) / n\n"
         "return (row * mask).sum() / max(mask.sum(), 1)", []),
        ("log_ratio - log_ratio.mean(0)", TOKEN_MEAN, ["SUR015"]),
        ("log_ratio.sum(0) / np.maximum(mask.sum(0), 1)", TOKEN_MEAN, ["SUR015"]),
    ],
)  # fmt: skip
def test_ratios_and_row_weights(tmp_path, ratio, end, expected):
    assert codes(tmp_path, f"ratio = np.exp({ratio})\n{TERM}{end}") == expected


def test_self_normalised_weights_are_no_centred_ratios(tmp_path):
    body = "ratio = np.exp(log_ratio.sum(1))\nreturn -(ratio / ratio.sum() * advantages).sum()"
    assert codes(tmp_path, body, clip="beta=0.0") == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", []),
        ("A = (A - A.mean()) / (A.std() + 1e-8)\n", ["SUR014"]),
        ("A = np.clip(A, -1, 1)\n", ["SUR014"]),
        ("A = A + np.zeros_like(ratio)\n", []),
    ],
)
def test_advantages_between_the_terms(tmp_path, line, expected):
    body = f"ratio = np.exp(log_ratio)\nfirst = ratio * A\n{line}second = {CLIP} * A\n"
    assert codes(tmp_path, f"{body}s = np.minimum(first, second)\n{TOKEN_MEAN}") == expected


@pytest.mark.parametrize(
    ("before", "line", "expected"),
    [
        (Z_SCORES, "A = (A - A.mean()) / (A.std() + 1e-8)", ["ADV008"]),
        (CENTRED, "A = (A - A.mean()) / (A.std() + 1e-8)", []),
        ("", "A = (A - A.mean()) / (A.std() + 1e-8)", []),
        (Z_SCORES, "A = np.sign(A)", []),
        (Z_SCORES, "A = np.clip(A, -1, 1)", []),
    ],
)
def test_a_loss_that_normalises_advantages(tmp_path, before, line, expected):
    body = f"{line}\nratio = np.exp(log_ratio)\n{TERM}{TOKEN_MEAN}"
    assert codes(tmp_path, body, before) == expected


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("", []),
        ("\ndef kept(mask, truncated):\n    return mask * ~truncated[:, None]\n\n", ["AGG005"]),
        ("\ndef cut(ids, end):\n    return show(mask_truncated=end)\n\n", []),
    ],
)
def test_a_row_without_tokens(tmp_path, before, expected):
    body = f"ratio = np.exp(log_ratio)\n{TERM}return -((s * mask).sum(1) / mask.sum(1)).mean()"
    assert codes(tmp_path, body, before) == expected


@pytest.mark.parametrize(
    ("clip", "clipped", "expected"),
    [
        ("clip_eps=3.0", "np.clip(ratio, 1 - clip_eps, 1 + clip_eps)", ["SUR007"]),
        ("clip_eps=CLIP", "np.clip(ratio, 1 - clip_eps, 1 + clip_eps)", ["SUR007"]),
        ("clip_eps=0.2", "np.clip(ratio, 1 + clip_eps, 1 - clip_eps)", ["SUR007"]),
        ("tokens=None", "np.minimum(np.maximum(ratio, 1.2), 0.8)", ["SUR007"]),
        ("tokens=None", "np.maximum(np.minimum(ratio, 0.8), 1.2)", ["SUR007"]),
        ("tokens=None", "np.clip(ratio, 0.8, 1.2)", []),
        ("eps_low=1.0, eps_high=0.28", "np.clip(ratio, 1 - eps_low, 1 + eps_high)", []),
        ("clip_low=0.8, clip_high=1.2", "np.clip(ratio, clip_low, clip_high)", []),
    ],
)  # fmt: skip
def test_clip_ranges(tmp_path, clip, clipped, expected):
    body = f"ratio = np.exp(log_ratio)\ns = np.minimum(ratio * A, ({clipped}) * A)\n{TOKEN_MEAN}"
    assert codes(tmp_path, body, "CLIP = 2.0\n\n", clip) == expected


def test_a_weight_that_is_open_below_is_cispo(tmp_path):
    text = '''\
import torch


def cispo_loss(logps, old_logps, advantages, mask, eps_low=10.0, eps_high=0.28):
    """Loss to minimise."""
    weight = torch.exp(logps - old_logps).clamp(1 - eps_low, 1 + eps_high).detach()
    return -(weight * advantages[:, None] * logps * mask).sum() / mask.sum().clamp(min=1)
'''
    pytest.importorskip("torch")
    assert strong(check_text(tmp_path, text)) == []
