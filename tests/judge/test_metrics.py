"""A clip fraction of no known definition is said to be unknown, and no published one is."""

import pytest
from tests.support.checking import check_text, strong

LINES = """import numpy as np


def {name}(logp, old_logp, advantages, mask, eps=0.2):
    r = np.exp(logp - old_logp)
    adv = advantages[:, None]
    {test}
    {result}
"""
TOKENS = "return (hit * mask).sum() / mask.sum()"
PUBLISHED = {
    # verl's pg_clipfrac: the clipped term is the larger loss
    "of the loss": ("hit = -adv * np.clip(r, 1 - eps, 1 + eps) > -adv * r", TOKENS),
    # TRL's low and high clip_ratio
    "low": ("hit = (r < 1 - eps) & (adv < 0)", TOKENS),
    "high": ("hit = (r > 1 + eps) & (adv > 0)", TOKENS),
    "mean of rows": ("hit = (r > 1 + eps) & (adv > 0)",
                     "return ((hit * mask).sum(1) / mask.sum(1)).mean()"),
    # GSPO's ratios are those of whole rows
    "by row": ("r = np.exp(((logp - old_logp) * mask).sum(1) / mask.sum(1))[:, None]\n"
               "    hit = ((r < 1 - eps) & (adv < 0)) | ((r > 1 + eps) & (adv > 0))", TOKENS),
    "percent": ("hit = (r > 1 + eps) & (adv > 0)", "return 100 * (hit * mask).sum() / mask.sum()"),
}  # fmt: skip


def about(report):
    return [s.reason for s in report.skipped if "clip fraction" in s.reason]


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_a_published_share_is_neither_blamed_nor_unknown(tmp_path, name):
    test, result = PUBLISHED[name]
    side = (
        "_low" if name == "low" else "_high" if name in ("high", "mean of rows", "percent") else ""
    )
    text = LINES.format(test=test, result=result, name=f"clip_fraction{side}")
    report = check_text(tmp_path, text)
    assert (strong(report), about(report)) == ([], [])


@pytest.mark.parametrize(
    "test",
    [
        "hit = ((r < 1 - 0.7 * eps) & (adv < 0)) | ((r > 1 + 0.7 * eps) & (adv > 0))",
        "hit = np.abs(r - 1)",  # the mean distance of a ratio from 1, no share
        "hit = (r > 1 + eps) & (adv < 0)",  # what a loss leaves alone at its upper bound
    ],
)
def test_another_share_is_unknown_with_its_distance_from_the_nearest(tmp_path, test):
    report = check_text(tmp_path, LINES.format(test=test, result=TOKENS, name="clip_fraction"))
    assert strong(report) == []
    [reason] = about(report)
    assert reason.startswith("unknown definition of a clip fraction: the nearest, the share")


def test_the_residual_is_that_of_the_worst_case(tmp_path):
    """Always ⅛ too much: every share of every case is off by just that."""
    test = "hit = ((r < 1 - eps) & (adv < 0)) | ((r > 1 + eps) & (adv > 0))"
    text = LINES.format(test=test, result=TOKENS + " + 0.125", name="clip_fraction")
    [reason] = about(check_text(tmp_path, text))
    assert reason.endswith("off by 0.12")


def test_what_is_blamed_is_not_unknown_as_well(tmp_path):
    test = "hit = np.clip(r, 1 - eps, 1 + eps) > 1 + eps"
    report = check_text(tmp_path, LINES.format(test=test, result=TOKENS, name="clip_fraction"))
    assert "MET001" in strong(report)
    assert about(report) == []
