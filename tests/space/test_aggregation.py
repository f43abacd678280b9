"""Weights of token slots, by hand and in sum."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlproof.space.aggregation import PUBLISHED

SAME = settings(derandomize=True, deadline=None)
MASK = np.array([[1.0, 0, 0], [1, 1, 1], [1, 1, 0]])  # lengths 1, 3 and 2: six real tokens


@st.composite
def masks(draw):
    """Masks of at least one row, every row with at least one real token, at any place."""
    rows, width = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    row = st.lists(st.sampled_from([0.0, 1.0]), min_size=width, max_size=width).filter(any)
    return np.array(draw(st.lists(row, min_size=rows, max_size=rows)))


# The weight of the only token of row 0, and of each of the three tokens of row 1.
@pytest.mark.parametrize(
    ("name", "short", "long"),
    [
        ("token-mean", 1 / 6, 1 / 6),
        ("sequence-mean", 1 / 3, 1 / 9),  # 1/(3·1) and 1/(3·3)
        ("sequence-sum", 1 / 3, 1 / 3),
        ("sum", 1, 1),
        ("constant-per-sequence", 1 / 3, 1 / 3),
        ("constant", 1, 1),
        ("per-token", 1, 1),
    ],
)
def test_weights_by_hand(name, short, long):
    weights = PUBLISHED[name](MASK)
    assert weights[0, 0] == pytest.approx(short)
    assert weights[1] == pytest.approx([long] * 3)


@given(masks())
@SAME
def test_weights_in_sum(mask):
    """A mean of ones is 1; a sum of ones is the number of tokens, B sequences share it."""
    tokens, rows = mask.sum(), len(mask)
    sums = {name: formula(mask).sum() for name, formula in PUBLISHED.items()}
    assert sums["token-mean"] == pytest.approx(1)
    assert sums["sequence-mean"] == pytest.approx(1)
    assert sums["sequence-sum"] == sums["constant-per-sequence"] == pytest.approx(tokens / rows)
    assert sums["sum"] == sums["constant"] == sums["per-token"] == tokens


@pytest.mark.parametrize("name", list(PUBLISHED))
@given(mask=masks())
@SAME
def test_padding_has_no_weight_and_real_tokens_have(name, mask):
    weights = PUBLISHED[name](mask)
    assert ((weights > 0) == (mask > 0)).all()


@pytest.mark.parametrize("name", list(PUBLISHED))
@given(mask=masks(), extra=st.integers(1, 3))
@SAME
def test_further_padding_changes_nothing(name, mask, extra):
    wider = np.hstack([mask, np.zeros((len(mask), extra))])
    assert PUBLISHED[name](wider)[:, : mask.shape[1]] == pytest.approx(PUBLISHED[name](mask))


@given(masks())
@SAME
def test_sequences_share_alike(mask):
    assert PUBLISHED["sequence-mean"](mask).sum(1) == pytest.approx(1 / len(mask))


def test_means_agree_for_equal_lengths():
    mask = np.ones((3, 4))
    assert PUBLISHED["token-mean"](mask) == pytest.approx(PUBLISHED["sequence-mean"](mask))


def test_row_without_a_token_counts_as_a_sequence():
    """1/B stays, so the weights of the other rows sum to (B − 1)/B = 1/2."""
    mask = np.array([[1.0, 1.0], [0.0, 0.0]])
    assert PUBLISHED["sequence-mean"](mask).tolist() == [[0.25, 0.25], [0.0, 0.0]]


def test_mask_is_left_alone():
    before = MASK.copy()
    for formula in PUBLISHED.values():
        formula(MASK)[:] = 7.0
    assert (before == MASK).all()
