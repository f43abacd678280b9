"""Finite differences against the gradient of Σ (i + 1)·θᵢ², which is 2(i + 1)·θᵢ."""

import pytest
from tests.support.checking import check_text, strong

from rlproof.faults.page import page
from rlproof.judge.differences import THETA, judge

EXACT = [[1.0, -2.0, 1.5, 0.0], [1.0, 2.4, 4.2, 6.4]]


def scaled(factor):
    return [[factor * x for x in row] for row in EXACT]


@pytest.mark.parametrize("factor", [2.0, 0.5, -1.0, 4e-8])
def test_a_factor_is_named(factor):
    found = judge(scaled(factor))
    assert found["times"] == pytest.approx(factor)
    assert found["exact"] == EXACT[0]


def test_anything_else_is_not():
    assert judge([[0.0] * 4, EXACT[1]])["times"] == 0


def test_the_gradient_one_sided_differences_and_other_shapes_are_silent():
    """(f(θ + h) − f(θ))/h is 2(i + 1)·θ + (i + 1)·h; h is 1e-2."""
    one_sided = [[x + 0.01 * (4 * r + c + 1) for c, x in enumerate(row)]
                 for r, row in enumerate(EXACT)]  # fmt: skip
    for answer in (EXACT, one_sided, EXACT[0], None, "x", [[float("nan")] * 4] * 2):
        assert judge(answer) is None
    assert [len(row) for row in THETA] == [4, 4]


HEALTHY = page("LOP015").healthy
SLIPS = {
    "times for divided": ("(up - down) / (2 * h)", "(up - down) * (2 * h)"),
    "turned round": ("up - down", "down - up"),
    "no step": ("/ (2 * h)", "/ 2"),
    "not put back": ("            row[j] = kept\n", ""),
    "one place": ("grad[i][j] =", "grad[i][0] ="),
}


@pytest.mark.parametrize("name", SLIPS)
def test_slips(tmp_path, name):
    old, new = SLIPS[name]
    assert old in HEALTHY
    codes = strong(check_text(tmp_path, HEALTHY.replace(old, new)))
    assert "LOP015" in codes or (name == "not put back" and "LOP011" in codes)


@pytest.mark.parametrize("step", ["1e-2", "1e-6"])
def test_other_steps_are_silent(tmp_path, step):
    assert strong(check_text(tmp_path, HEALTHY.replace("1e-4", step))) == []
