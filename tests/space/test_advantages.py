"""Baselines and scales of advantages."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rlproof.space.advantages import BASELINES, SCALES

SAME = settings(derandomize=True, deadline=None)
GROUPS = np.array([[1.0, 0, 0, 3], [2, 2, 2, 2]])  # means 1 and 2, of all 1.5


@st.composite
def rewards(draw):
    """Rewards (P, G) of groups with two or more members."""
    groups, members = draw(st.integers(1, 4)), draw(st.integers(2, 6))
    row = st.lists(st.floats(-5, 5, width=32), min_size=members, max_size=members)
    return np.array(draw(st.lists(row, min_size=groups, max_size=groups)), dtype=float)


def test_baselines_by_hand():
    """The others of 1, 0, 0, 3 have means (0+0+3)/3, (1+0+3)/3 twice, and (1+0+0)/3."""
    found = {name: np.broadcast_to(f(GROUPS), (2, 4)) for name, f in BASELINES.items()}
    assert found["group-mean"].tolist() == [[1] * 4, [2] * 4]
    assert found["leave-one-out"][0] == pytest.approx([1, 4 / 3, 4 / 3, 1 / 3])
    assert found["batch-mean"].tolist() == [[1.5] * 4] * 2
    assert found["none"].tolist() == [[0] * 4] * 2


def test_scales_by_hand():
    """Squared deviations of 1, 0, 0, 3 from 1: 0+1+1+4 = 6; of all eight from 1.5:

    0.25 + 2.25 + 2.25 + 2.25 + 4·0.25 = 8.
    """
    found = {name: np.broadcast_to(f(GROUPS), (2, 4))[:, 0] for name, f in SCALES.items()}
    assert found["population-std"] == pytest.approx([np.sqrt(6 / 4), 0])
    assert found["sample-std"] == pytest.approx([np.sqrt(6 / 3), 0])
    assert found["batch-population-std"] == pytest.approx([1, 1])  # √(8/8)
    assert found["batch-sample-std"] == pytest.approx([np.sqrt(8 / 7)] * 2)
    assert found["none"].tolist() == [1, 1]


@given(rewards())
@SAME
def test_centred_advantages_sum_to_zero(values):
    """Over each group for a group's mean, over the batch for the mean of all."""
    zero = pytest.approx(0, abs=1e-9)
    for name in ("group-mean", "leave-one-out"):
        for total in (values - BASELINES[name](values)).sum(1):
            assert total == zero
    assert (values - BASELINES["batch-mean"](values)).sum() == zero


@given(rewards())
@SAME
def test_leave_one_out_is_a_stretched_group_mean(values):
    """r − (S − r)/(G−1) = (G·r − S)/(G−1) = G/(G−1)·(r − S/G)."""
    members = values.shape[1]
    stretched = members / (members - 1) * (values - BASELINES["group-mean"](values))
    assert values - BASELINES["leave-one-out"](values) == pytest.approx(stretched, abs=1e-9)


@pytest.mark.parametrize("name", ["group-mean", "leave-one-out", "batch-mean"])
@given(values=rewards(), shift=st.floats(-10, 10))
@SAME
def test_baselines_follow_a_shift(name, values, shift):
    before = values - BASELINES[name](values)
    after = values + shift - BASELINES[name](values + shift)
    assert after == pytest.approx(before, abs=1e-9)


SPREADS = [name for name in SCALES if name.endswith("-std") and name != "leave-one-out-std"]


@pytest.mark.parametrize("name", [*SPREADS, "none"])
@given(values=rewards(), shift=st.floats(-10, 10), factor=st.floats(0.1, 10))
@SAME
def test_scales_ignore_a_shift_and_follow_a_factor(name, values, shift, factor):
    scale = SCALES[name]
    grown = 1.0 if name == "none" else factor
    assert scale(values + shift) == pytest.approx(scale(values), abs=1e-6)
    assert scale(values * factor) == pytest.approx(scale(values) * grown, abs=1e-6)


def test_spread_of_the_others_by_hand():
    """Of 1, 0, 0, 3 without 1: 0, 0, 3 around 1, (1+1+4)/2; without 0: (1/9+16/9+25/9)/2;

    without 3: 1, 0, 0 around 1/3, (4/9+1/9+1/9)/2.
    """
    found = SCALES["leave-one-out-std"](GROUPS[:1])[0]
    assert found**2 == pytest.approx([3, 7 / 3, 7 / 3, 1 / 3])


def test_std_of_the_others_by_hand():
    """Of 0 and 1 it is √½, of 1 and 1 nothing: then the scale is 1, as with one other."""
    found = SCALES["leave-one-out-std"](np.array([[0.0, 1.0, 1.0]]))
    assert found == pytest.approx(np.array([[1.0, 0.5**0.5, 0.5**0.5]]))
    assert SCALES["leave-one-out-std"](np.array([[0.0, 1.0]])).tolist() == [[1.0, 1.0]]


def test_share_of_rows_with_a_signal_by_hand():
    """Four rows, of which the two of the second group differ from their mean."""
    assert SCALES["nonzero-share"](np.array([[1.0, 1.0], [0.0, 1.0]])).tolist() == [[0.5]]


def test_group_mean_as_a_scale_follows_a_factor_and_a_shift():
    values = np.array([[0.0, 1.0]])
    assert SCALES["group-mean"](3 * values + 1).tolist() == [[2.5]]


@given(rewards())
@SAME
def test_sample_std_is_the_larger(values):
    """Their squares are in the ratio G/(G−1)."""
    members = values.shape[1]
    stretched = SCALES["population-std"](values) * np.sqrt(members / (members - 1))
    assert SCALES["sample-std"](values) == pytest.approx(stretched)


@given(rewards())
@SAME
def test_standardised_groups_have_unit_spread(values):
    scale = SCALES["population-std"](values)
    assume(scale.min() > 1e-3)
    standardised = (values - BASELINES["group-mean"](values)) / scale
    assert standardised.std(1) == pytest.approx(1)


@pytest.mark.parametrize("table", [BASELINES, SCALES])
@given(values=rewards())
@SAME
def test_statistics_broadcast_against_the_rewards(table, values):
    for statistic in table.values():
        assert np.broadcast_shapes(statistic(values).shape, values.shape) == values.shape
