"""A divergence in the reward is named; its place and sign are part of the name."""

import pytest
from tests.support.checking import check_text, strong

SHAPING = '''
import numpy as np


def shape_rewards(rewards, logps, ref_logps, mask, beta=0.05):
    """The reward of each sequence, less a divergence from the reference."""
    gap = (logps - ref_logps) * mask
    return {result}
'''


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("rewards - beta * gap.sum(1)", ("k1", "sum", -1.0)),
        ("rewards - beta * gap.sum(1) / mask.sum(1)", ("k1", "mean", -1.0)),
        ("rewards[:, None] * (mask.cumsum(1) == 1) - beta * gap", ("k1", "token", -1.0)),
        ("rewards - beta * (gap**2).sum(1)", ("k2", "sum", -2.0)),  # k2 is half the square
        ("rewards - 0.5 * beta * np.abs(gap).sum(1)", ("absolute", "sum", -0.5)),
        ("rewards + beta * gap.sum(1)", ("k1", "sum", 1.0)),
    ],
)
def test_the_penalty_is_named(tmp_path, result, expected):
    report = check_text(tmp_path, SHAPING.format(result=result))
    point = report.targets[0].objective
    assert (point["divergence"], point["reduction"], point["divergence_weight"]) == expected
    assert point["place"] == "reward"
    biased = expected[0] in ("k2", "k3")  # their reward gradient is not that of the divergence
    assert (strong(report), report.checked) == (["KLD009"] * biased, 1)


def test_rewards_without_a_penalty_have_no_coordinates(tmp_path):
    report = check_text(tmp_path, SHAPING.format(result="rewards * 2.0"))
    assert report.targets[0].objective == {}


def test_an_argument_nobody_can_give_is_named(tmp_path):
    text = SHAPING.format(result="rewards").replace("mask, beta", "mask, horizon, beta")
    report = check_text(tmp_path, text)
    assert "needs `horizon`" in report.skipped[0].reason
