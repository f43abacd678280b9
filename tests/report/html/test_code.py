"""Listings cut into runs, and diffs into kinds of lines."""

from hypothesis import given, settings
from hypothesis import strategies as st

from rlproof.report.html.blocks import Link, Listing, Mark, Tone
from rlproof.report.html.code import diff_lines, rows

SOURCE = ["def f(x):", '    """Two', '    lines."""', "    return x  # why", ""]


def mark(line, end_line, col=0, end_col=0):
    return Mark(line, end_line, col, end_col, Tone.ERROR, Link("SUR004", "f1-1"))


def runs(listing, number):
    return [
        (run.text, run.token, run.marked)
        for row in rows(listing)
        if row.number == number and not row.left_out
        for run in row.runs
    ]


def test_tokens():
    listing = Listing("", SOURCE, "src")
    assert runs(listing, 1) == [("def", "k", ""), (" f(x):", "", "")]
    assert runs(listing, 2) == [("    ", "", ""), ('"""Two', "s", "")]
    assert runs(listing, 3) == [('    lines."""', "s", "")]
    assert runs(listing, 4) == [
        ("    ", "", ""), ("return", "k", ""), (" x  ", "", ""), ("# why", "c", ""),
    ]  # fmt: skip


def test_marked_columns_of_one_line():
    listing = Listing("", SOURCE, "src", [mark(4, 4, 4, 12)])
    assert runs(listing, 4) == [
        ("    ", "", ""), ("return", "k", "error"), (" x", "", "error"), ("  ", "", ""),
        ("# why", "c", ""),
    ]  # fmt: skip


def test_a_mark_over_lines_is_named_at_the_last():
    listing = Listing("", SOURCE, "src", [mark(1, 4)])
    found = {row.number: row for row in rows(listing)}
    assert [n for n, row in found.items() if row.tone == "error"] == [1, 2, 3, 4]
    assert [n for n, row in found.items() if row.marks] == [4]
    assert runs(listing, 2)[1] == ('"""Two', "s", "error")


def test_gaps_are_counted():
    listing = Listing("", list("abcdefg"), "src", shown=frozenset({3, 4}))
    assert [(row.number, row.left_out) for row in rows(listing)] == [(3, 2), (3, 0), (4, 0), (8, 3)]


def test_an_excerpt_keeps_its_numbers():
    listing = Listing("", ["    x = 1", "y"], "src", first=50)
    assert [row.number for row in rows(listing)] == [50, 51]


def test_a_long_line_is_cut():
    (row,) = rows(Listing("", ["x" * 1000], "src"))
    assert "".join(run.text for run in row.runs) == "x" * 400 + " … 600 more characters"


@given(st.lists(st.text(st.characters(blacklist_characters="\n\r\f"), max_size=30), min_size=1))
@settings(derandomize=True, deadline=None)
def test_runs_give_the_line_back_whatever_it_is(lines):
    listing = Listing("", lines, "src", [mark(1, 1, 2, 5)])
    assert ["".join(run.text for run in row.runs) for row in rows(listing)] == lines


def test_diff():
    diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n same\n-old\n+new\n"
    assert [kind for kind, _ in diff_lines(diff)] == ["head", "head", "hunk", "", "del", "add"]
