"""Filters of completions, by hand."""

import numpy as np
import pytest

from rlproof.space.filters import Filter, kept_rows
from rlproof.space.objective import Batch, Objective, ObjectiveError

# Groups of 2: means 0, 0.5, 1 and 0.1; the last two have no spread, though 0.1 is not exact.
REWARDS = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.1, 0.1])


@pytest.mark.parametrize(
    ("how", "by_hand"),
    [
        (Filter(), [1, 1, 1, 1, 1, 1, 1, 1]),
        (Filter("zero-advantage"), [1, 1, 1, 1, 1, 1, 1, 1]),
        (Filter("zero-variance"), [0, 0, 1, 1, 0, 0, 0, 0]),
        (Filter("zero-variance", 0.5), [0, 0, 0, 0, 0, 0, 0, 0]),  # the std of 0 and 1 is 0.5
        (Filter("mean-range"), [0, 0, 1, 1, 0, 0, 1, 1]),  # strictly between 0 and 1
        (Filter("mean-range", 0.2, 2.0), [0, 0, 1, 1, 1, 1, 0, 0]),
    ],
)
def test_by_hand(how, by_hand):
    assert kept_rows(REWARDS, 2, how).tolist() == by_hand
    assert Objective(filter=how).kept(REWARDS, 2).tolist() == by_hand


def test_groups_by_name_and_in_any_order():
    names = ["b", "a", "a", "b"]
    assert kept_rows(np.array([1.0, 0.0, 1.0, 1.0]), names, Filter("zero-variance")).tolist() == (
        [0, 1, 1, 0]
    )


def test_nothing_to_keep():
    assert kept_rows(np.zeros(0), 2, Filter("zero-variance")).shape == (0,)


@pytest.mark.parametrize(("counted", "by_hand"), [(False, -1.0), (True, -0.5)])
def test_what_is_left_out_may_still_count(counted, by_hand):
    """Two rows of one token, A = 1, ratio 1; one is left out: −1 over one row or over two."""
    ones = np.ones((2, 1))
    made = Batch(-ones, np.ones(2), ones, old=-ones, kept=np.array([1.0, 0.0]))
    how = Objective(filter=Filter("zero-variance", counted=counted), aggregation="token-mean")
    assert float(how.loss(made)[0]) == by_hand


def test_a_filter_asks_for_what_it_kept():
    made = Batch(np.zeros((1, 1)), np.ones(1), np.ones((1, 1)))
    with pytest.raises(ObjectiveError, match=r"'mean-range' needs batch\.kept"):
        Objective(filter=Filter("mean-range")).loss(made)
