"""Repairs of faults as public code has them, in other names, libraries and shapes.

What an edit must become is derived by hand: k1 is log π_new − log π_other, so half of the square of
either difference becomes that one; e^x − 1 is expm1(x).
"""

import pytest
from tests.support.repairing import repair_text, run

from rlproof.judge.check import check
from rlproof.judge.findings import FixStatus
from rlproof.read.script import read

COEFFICIENT = '''import torch


def reinforce_loss(new_logps, {other}_logps, advantages, mask, beta=0.1):
    """Policy gradient with a penalty in the coefficient."""
    gap = {gap}
    weight = advantages.unsqueeze(-1) - beta * {penalty}
    terms = -weight.detach() * new_logps
    return (terms * mask).sum() / mask.sum()
'''


def made(report, text):
    """The lines that a repair put in, stripped."""
    assert report.repair.status is FixStatus.VERIFIED, report.repair.message
    before = text.splitlines()
    return [line.strip() for line in report.repair.text.splitlines() if line not in before]


def healthy(tmp_path, text):
    """No error or warning is left in the repaired text, and it is repaired no further."""
    report = repair_text(tmp_path, text)
    return report.repair is None


@pytest.mark.parametrize(
    ("other", "gap", "penalty", "line"),
    [
        ("ref", "new_logps - ref_logps", "gap**2 / 2", "beta * gap"),
        ("old", "old_logps - new_logps", "(gap * gap) * 0.5", "beta * (-gap)"),
        ("ref", "ref_logps - new_logps", "0.5 * gap.square()", "beta * (-gap)"),
        ("ref", "new_logps - ref_logps", "torch.pow(gap, 2) / 2", "beta * gap"),
        ("old", "old_logps - new_logps", "(torch.exp(gap) - 1 - gap)", "beta * (-gap)"),
        ("ref", "new_logps - ref_logps", "((-gap).exp() + gap - 1)", "beta * (-(-gap))"),
        ("ref", "ref_logps - new_logps", "(torch.expm1(gap) - gap)", "beta * (-gap)"),
    ],
)
def test_a_penalty_in_a_coefficient_becomes_k1(tmp_path, other, gap, penalty, line):
    pytest.importorskip("torch")
    text = COEFFICIENT.format(other=other, gap=gap, penalty=penalty)
    report = repair_text(tmp_path, text)
    assert made(report, text) == [f"weight = advantages.unsqueeze(-1) - {line}"]
    assert healthy(tmp_path, report.repair.text)


def test_the_sign_of_k1_is_that_of_the_penalty(tmp_path):
    """−d in place of d²/2 would reward the distance: no edit may turn the sign of the weight."""
    torch = pytest.importorskip("torch")
    text = COEFFICIENT.format(other="ref", gap="ref_logps - new_logps", penalty="0.5 * gap**2")
    loss = run(repair_text(tmp_path, text).repair.text)["reinforce_loss"]
    new = torch.tensor([[0.25]]).log().requires_grad_()
    loss(new, torch.tensor([[0.5]]).log(), torch.zeros(1), torch.ones(1, 1), 1.0).backward()
    assert new.grad.item() == pytest.approx(-0.693147, abs=1e-5)  # ln ¼ − ln ½: back up to ½


KL = """{head}


def grpo_loss(logps, old_logps, ref_logps, advantages, mask, beta=0.04):
    ratio = {lib}.exp(logps - old_logps)
    gap = (ref_logps - logps).float()
    {kl}
    loss = -(ratio * advantages[:, None] - beta * kl)
    return (loss * mask).sum() / mask.sum()
"""


@pytest.mark.parametrize(
    ("kl", "line"),
    [
        ("kl = torch.exp(gap) - gap - 1.0", "kl = torch.expm1(gap) - gap"),
        ("kl = gap.exp() - 1 - gap", "kl = gap.expm1() - gap"),
        ("kl = -1 - gap + gap.exp()", "kl = gap.expm1() - gap"),
        ("p = gap.exp(); kl = p - gap - 1", "p = gap.exp(); kl = gap.expm1() - gap"),
    ],
)
def test_k3_in_single_precision_takes_expm1_where_it_is_asked_for(tmp_path, kl, line):
    pytest.importorskip("torch")
    text = KL.format(head="import torch", lib="torch", kl=kl)
    report = repair_text(tmp_path, text, notes=frozenset({"KLD011"}))
    assert made(report, text) == [line]
    assert "KLD011" not in {f.code for f in report.repair.after.findings}


def test_a_note_is_left_alone_unless_it_is_asked_for_by_name(tmp_path):
    pytest.importorskip("torch")
    from rlproof.options import Options

    text = KL.format(head="import torch", lib="torch", kl="kl = torch.exp(gap) - gap - 1")
    assert repair_text(tmp_path, text).repair is None

    def named(*select):
        return Options.resolve(select, (), None, True, None, None, start=tmp_path).named

    assert named("KLD011", "SUR") == named("k3-cancellation") == frozenset({"KLD011"})
    assert named() == named("KLD") == frozenset()


PADDED = {
    "torch": """import torch


class Trainer:
    def __init__(self, eps=0.2):
        self.eps = eps

    def compute_loss(self, logps, old_logps, advantages, completion_mask):
        coef = torch.exp(logps - old_logps)
        capped = torch.clamp(coef, 1 - self.eps, 1 + self.eps)
        per_token = -torch.min(coef * advantages[:, None], capped * advantages[:, None])
        return (per_token * completion_mask).sum() / completion_mask.sum()
""",
    "numpy": """import numpy as np


def loss_fn(new_lp, old_lp, ref_lp, adv, m, eps=0.2, beta=0.1):
    r = np.exp(new_lp - old_lp)
    d = ref_lp - new_lp
    t = np.minimum(r * adv[:, None], np.clip(r, 1 - eps, 1 + eps) * adv[:, None])
    return -((t - beta * (np.expm1(d) - d)) * m).sum() / m.sum()
""",
    "brackets": """import torch


def policy_loss(log_probs, old_log_probs, advantages, action_mask, clip_eps=0.2):
    ratio = (log_probs - old_log_probs).exp()
    loss = -torch.min(ratio * advantages, ratio.clamp(1 - clip_eps, 1 + clip_eps) * advantages)
    return (loss * action_mask).sum() / action_mask.sum()
""",
}
FILLED = {
    "torch": ["coef = torch.exp(torch.where(completion_mask.bool(), logps - old_logps, 0.0))"],
    "numpy": ["r = np.exp(np.where(m, new_lp - old_lp, 0.0))",
              "d = np.where(m, ref_lp - new_lp, 0.0)"],
    "brackets": [
        "ratio = torch.where(action_mask.bool(), log_probs - old_log_probs, 0.0).exp()"
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(PADDED))
def test_padding_is_filled_before_any_arithmetic(tmp_path, name):
    if name != "numpy":
        pytest.importorskip("torch")
    report = repair_text(tmp_path, PADDED[name], notes=frozenset({"MSK008"}))
    assert made(report, PADDED[name]) == FILLED[name]
    assert "MSK008" not in {f.code for f in report.repair.after.findings}


def test_the_gradient_of_filled_padding_is_finite(tmp_path):
    """A choice behind exp would give the value, and 0 · inf in the gradient."""
    torch = pytest.importorskip("torch")
    report = repair_text(tmp_path, PADDED["brackets"], notes=frozenset({"MSK008"}))
    new = torch.full((1, 2), -1.0, requires_grad=True)
    old = torch.tensor([[-1.0, float("-inf")]])
    loss = run(report.repair.text)["policy_loss"]
    loss(new, old, torch.ones(1, 1), torch.tensor([[1.0, 0.0]])).backward()
    assert new.grad.tolist() == [[-1.0, 0.0]]


RANGE = """import torch

{before}
def policy_loss(logp, old_logp, advantages, mask, {parameter}):
    {ratio}
    capped = ratio.clamp({low}, {high})
    loss = -torch.min(ratio * advantages[:, None], capped * advantages[:, None])
    return (loss * mask).sum() / mask.sum()
{after}"""
TOKEN = "ratio = torch.exp(logp - old_logp)"
CASES = {
    "own default": ({"parameter": "eps=4.0", "low": "1 - eps", "high": "1 + eps"}, "eps=0.2):"),
    "a setting": (
        {
            "parameter": "eps", "low": "1 - eps", "high": "1 + eps",
            "before": "from dataclasses import dataclass\n\n\n@dataclass\nclass Config:\n"
                      "    clip_eps: float = 2.0\n\n\n",
            "after": "\n\ndef step(logp, old, adv, mask, cfg: Config):\n"
                     "    return policy_loss(logp, old, adv, mask, cfg.clip_eps)\n",
        },
        "clip_eps: float = 0.2",
    ),
    "a constant": (
        {"parameter": "eps=CLIP", "low": "1 - eps", "high": "1 + eps", "before": "CLIP = 3\n\n"},
        "CLIP = 0.2",
    ),
    "from a cap": (
        {"parameter": "cap=5.0", "low": "1 - low", "high": "cap",
         "ratio": f"low = 1.0 - cap\n    {TOKEN}"},
        "low = 0.2",
    ),
    "from a cap in place": (
        {"parameter": "cap=5.0", "low": "1 - (1 - cap)", "high": "1 + (cap - 1)"},
        "capped = ratio.clamp(1 - 0.2, 1 + (cap - 1))",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CASES))
def test_an_impossible_range_becomes_the_published_one(tmp_path, name):
    pytest.importorskip("torch")
    parts, line = CASES[name]
    text = RANGE.format(**{"before": "", "after": "", "ratio": TOKEN, **parts})
    report = repair_text(tmp_path, text)
    [new] = made(report, text)
    assert new.endswith(line)
    [fix] = [f.fix for f in report.findings if f.code == "SUR007"]
    assert fix.chosen.startswith("0.2 is the range of PPO")
    assert healthy(tmp_path, report.repair.text)


def test_the_range_of_rows_is_a_choice(tmp_path):
    """GSPO's ranges are 3e-4 and 4e-4 (arXiv:2507.18071): 0.2 would be none for it."""
    pytest.importorskip("torch")
    text = """import torch


def gspo_loss(logp, old_logp, advantages, mask, clip_eps=3.0):
    log_ratio = ((logp - old_logp) * mask).sum(-1) / mask.sum(-1)
    ratio = log_ratio.exp()
    loss = -torch.min(ratio * advantages, ratio.clamp(1 - clip_eps, 1 + clip_eps) * advantages)
    return loss.mean()
"""
    report = repair_text(tmp_path, text)
    assert report.repair.status is FixStatus.SUGGESTED
    assert "GSPO" in report.repair.message


def test_healthy_code_is_not_touched(tmp_path):
    """The same files without their fault: no finding, so no edit."""
    pytest.importorskip("torch")
    path = tmp_path / "healthy.py"
    for text in (
        COEFFICIENT.format(other="ref", gap="new_logps - ref_logps", penalty="gap"),
        KL.format(head="import torch", lib="torch", kl="kl = torch.expm1(gap) - gap"),
        RANGE.format(before="", after="", ratio=TOKEN, parameter="eps=0.2", low="1 - eps",
                     high="1 + eps"),
    ):  # fmt: skip
        path.write_text(text)
        codes = {f.code for f in check(read(str(path))).findings if f.severity != "note"}
        assert codes == set()


TEMPERATURE = {
    "a copy": (
        """import numpy as np


def token_logps(logits, completion_ids, temperature=1.0):
    x = np.asarray(logits)
    log_z = np.log(np.exp(x).sum(axis=-1, keepdims=True))
    return np.take_along_axis(x - log_z, completion_ids[..., None], axis=-1)[..., 0]
""",
        ["x = np.asarray(logits) / temperature"],
    ),
    "no copy": (
        """import torch


def token_logps(logits, ids, temperature=0.7):
    return torch.log_softmax(logits, dim=-1).gather(-1, ids[..., None])[..., 0]
""",
        ["logits = logits / temperature"],
    ),
    "another number first": (
        """import numpy as np


def log_probs(scores, labels, temp):
    \"\"\"One for each label.\"\"\"
    top = scores.max(axis=-1, keepdims=True)
    log_z = top + np.log(np.exp(scores - top).sum(axis=-1, keepdims=True))
    return np.take_along_axis(scores - log_z, labels[..., None], axis=-1)[..., 0]
""",
        ["scores = scores / temp"],
    ),
    "lists": (
        """from math import exp, log


def log_probs(logits, tokens, temperature=1.0):
    out = []
    for row, ids in zip(logits, tokens):
        out.append([x[i] - log(sum(exp(y) for y in x)) for x, i in zip(row, ids)])
    return out
""",
        ["logits = [[[x / temperature for x in line] for line in row] for row in logits]"],
    ),
}


@pytest.mark.parametrize("name", sorted(TEMPERATURE))
def test_an_unused_temperature_divides_the_logits_it_is_given_with(tmp_path, name):
    text, lines = TEMPERATURE[name]
    if "torch" in text:
        pytest.importorskip("torch")
    report = repair_text(tmp_path, text)
    assert made(report, text) == lines
    assert healthy(tmp_path, report.repair.text)


LOSS = """import {module} as xp


def grpo_loss(logp, old_logp, {adv}, mask, eps=0.2):
    r = xp.exp(logp - old_logp)
    return -({smaller}(r * {wide}, r.{clip}(1 - eps, 1 + eps) * {wide}) * mask).sum() / mask.sum()


def clip_ratio(logp, old_logp, {adv}, mask, eps=0.2):
    r = xp.exp(logp - old_logp)
    {test}
    return (hit * mask).sum() / mask.sum()
"""
TORCH = {"module": "torch", "smaller": "xp.min", "clip": "clamp"}
NUMPY = {"module": "numpy", "smaller": "xp.minimum", "clip": "clip"}
BY_ROW = {"adv": "advantages", "wide": "advantages[:, None]"}
BY_TOKEN = {"adv": "adv", "wide": "adv"}
SIDES = {
    "bounds": (
        {**TORCH, **BY_ROW, "test": "hit = (r < 1 - eps) | (r > 1 + eps)"},
        [
            "adv = advantages[:, None]",
            "hit = ((r < 1 - eps) & (adv < 0)) | ((r > 1 + eps) & (adv > 0))",
        ],
    ),
    "distance": (
        {**NUMPY, **BY_ROW, "test": "hit = xp.abs(r - 1) > eps"},
        ["adv = advantages[:, None]", "hit = (r - 1) * xp.sign(adv) > eps"],
    ),
    "change": (
        {**TORCH, **BY_TOKEN, "test": "hit = r != r.clamp(1 - eps, 1 + eps)"},
        ["hit = r.clamp(1 - eps, 1 + eps) * adv < r * adv"],
    ),
    "function": (
        {**NUMPY, **BY_TOKEN, "test": "hit = xp.logical_or(1 - eps > r, r >= 1 + eps)"},
        ["hit = xp.logical_or((1 - eps > r) & (adv < 0), (r >= 1 + eps) & (adv > 0))"],
    ),
}


@pytest.mark.parametrize("name", sorted(SIDES))
def test_a_share_of_what_is_outside_becomes_one_of_what_is_clipped(tmp_path, name):
    parts, lines = SIDES[name]
    if parts["module"] == "torch":
        pytest.importorskip("torch")
    text = LOSS.format(**parts)
    report = repair_text(tmp_path, text)
    assert made(report, text) == lines
    assert healthy(tmp_path, report.repair.text)


def test_where_nothing_says_how_advantages_lie_there_is_no_edit(tmp_path):
    """One number a row or one a token: a wrong guess would run, and count the wrong tokens."""
    pytest.importorskip("torch")
    parts = {**TORCH, **BY_TOKEN, "test": "hit = (r < 1 - eps) | (r > 1 + eps)"}
    alone = LOSS.format(**parts)
    text = alone.partition("def grpo_loss")[0] + "def clip_ratio" + alone.partition("clip_ratio")[2]
    report = repair_text(tmp_path, text)
    assert [f.code for f in report.findings if f.severity != "note"] == ["MET001"]
    assert report.repair.status is FixStatus.SUGGESTED
