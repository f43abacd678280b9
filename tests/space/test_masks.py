"""Which tokens count, by hand."""

import numpy as np
import pytest

from rlproof.space.masks import Masks, token_mask
from rlproof.space.objective import Objective

LENGTHS = np.array([3, 4, 0])
CUT = np.array([0, 1, 0])
TOOL = np.array([[0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]])


@pytest.mark.parametrize(
    ("how", "given", "by_hand"),
    [
        (Masks(), {}, [[1, 1, 1, 0], [1, 1, 1, 1], [0, 0, 0, 0]]),
        (Masks(), {"truncated_B": CUT}, [[1, 1, 1, 0], [1, 1, 1, 1], [0, 0, 0, 0]]),
        (Masks("dropped"), {"truncated_B": CUT}, [[1, 1, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]]),
        # the last token ends a completion, unless it was cut off
        (Masks(end="dropped"), {"truncated_B": CUT}, [[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]]),
        (Masks(end="dropped"), {}, [[1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 0, 0]]),
        (Masks(), {"injected_BT": TOOL}, [[1, 0, 1, 0], [1, 1, 1, 0], [0, 0, 0, 0]]),
    ],
)
def test_by_hand(how, given, by_hand):
    assert token_mask(LENGTHS, 4, how, **given).tolist() == by_hand


def test_the_objective_passes_its_coordinates():
    found = Objective(masks=Masks("dropped", "dropped")).mask(LENGTHS, 4, CUT, TOOL)
    assert found.tolist() == [[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]


def test_dropping_truncated_rows_asks_which_they_are():
    with pytest.raises(ValueError, match="needs to know which rows are truncated"):
        token_mask(LENGTHS, 4, Masks("dropped"))
