"""Edits as spans: put together in any order, never on top of each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlproof.repair.edits.model import Change, ConflictError, Edit, compose

TEXT = "total += max(a, b) / c"


def edit(*changes):
    return Edit("", tuple(Change(*c) for c in changes))


def test_one_edit_in_another_s_brackets():
    """-(max(a, b)) by one edit, max to min by another, and exp( ) around all of it."""
    start, stop = 9, 18
    negate = edit((start, start, "-(", 9), (stop, stop, ")", -9))
    rename = edit((9, 12, "min"))
    wrap = edit((9, 9, "exp(", 13), (22, 22, ")", -13))
    expected = "total += exp(-(min(a, b)) / c)"
    for order in ([negate, rename, wrap], [wrap, rename, negate], [rename, wrap, negate]):
        assert compose(TEXT, order) == expected


def test_the_same_change_twice_is_made_once():
    rename = edit((9, 12, "min"))
    assert compose(TEXT, [rename, rename]) == "total += min(a, b) / c"


def test_two_readings_of_one_span_conflict():
    with pytest.raises(ConflictError):
        compose(TEXT, [edit((9, 12, "min")), edit((9, 18, "a"))])
    with pytest.raises(ConflictError):
        compose(TEXT, [edit((9, 18, "a")), edit((13, 13, "-"))])


@pytest.mark.parametrize(
    ("old", "new", "size"),
    [("max", "min", 1), ("", "-", 1), ("a / b", "exp(a - b)", 6), ("x", "x", 0), ("f(", "g(", 1)],
)
def test_size_counts_tokens(old, new, size):
    """Of `exp ( a - b )` and `a / b` neither the first nor the last token is shared: 6."""
    assert Edit("", (Change(0, len(old), new),)).size(f"{old} tail") == size


@given(st.lists(st.integers(0, 40), min_size=2, max_size=10, unique=True), st.randoms())
def test_disjoint_changes_commute(cuts, rng):
    text = "".join(chr(97 + i % 26) for i in range(41))
    cuts = sorted(cuts)
    spans = list(zip(cuts[::2], cuts[1::2], strict=False))
    edits = [edit((a, b, f"<{a}>")) for a, b in spans]
    expected = compose(text, edits)
    rng.shuffle(edits)
    assert compose(text, edits) == expected
    kept = [c for i, c in enumerate(text) if not any(a <= i < b for a, b in spans)]
    assert [c for c in expected if c.isalpha()] == kept
