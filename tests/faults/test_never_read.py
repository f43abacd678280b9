"""A cap that nothing reads, and a std that is the result of a comparison."""

import pytest
from tests.support.checking import check_text, strong

LOSS = """
import numpy as np

def policy_loss(logps, old_logps, advantages, mask, clip_low=0.2, clip_high=0.2, clip_ratio_c=3.0):
    ratio = np.exp(np.where(mask, logps - old_logps, 0.0))
    adv = np.asarray(advantages)[:, None]
    losses = np.maximum(-adv * ratio, -adv * np.clip(ratio, 1 - clip_low, 1 + clip_high))
    {cap}
    return np.where(mask, losses, 0.0).sum() / max(np.sum(mask), 1)
"""
CAPPED = "losses = np.where(adv < 0, np.minimum(losses, -adv * clip_ratio_c), losses)"


@pytest.mark.parametrize(
    ("cap", "codes"), [("pass", ["SUR008"]), (CAPPED, []), ("del clip_ratio_c", [])]
)
def test_a_cap_that_is_not_read(tmp_path, cap, codes):
    report = check_text(tmp_path, LOSS.format(cap=cap))
    assert strong(report) == codes
    for finding in report.findings:
        if finding.code == "SUR008":  # ρ = e^2.9 = 18.17, A = −1: uncapped the loss is ρ
            assert finding.evidence.got == [pytest.approx(18.17, abs=0.01)] * 2


ADVANTAGES = """
import numpy as np

def of_group(scores):
    mean = np.mean(scores)
    {std}
        return [(s - mean) / std for s in scores]
    return [s - mean for s in scores]

def compute_advantages(rewards, n_samples):
    advantages = []
    for start in range(0, len(rewards), n_samples):
        advantages.extend(of_group(rewards[start : start + n_samples]))
    return np.array(advantages)
"""


@pytest.mark.parametrize(
    ("std", "codes"),
    [
        ("if std := np.std(scores) > 0:", ["ADV011"]),
        ("std = np.std(scores) > 1e-6\n    if std:", ["ADV011"]),
        ("if (std := np.std(scores)) > 1e-6:", []),
        ("std = np.std(scores)\n    if std > 1e-6:", []),
    ],
)
def test_a_std_that_is_a_comparison(tmp_path, std, codes):
    report = check_text(tmp_path, ADVANTAGES.format(std=std))
    assert strong(report) == codes
    at = (
        ADVANTAGES.format(std=std).split("\n").index(next(iter(std.split("\n"))).join(["    ", ""]))
    )
    assert [f.place.line for f in report.findings if f.code == "ADV011"] == [at + 1] * len(codes)
