"""The two text reports, on reports made by hand. Expected layouts are drawn out in the tests."""

import click
import pytest

from rlproof.faults.model import Evidence, Severity
from rlproof.faults.registry import catalogue
from rlproof.faults.seen import Place
from rlproof.judge.findings import FileReport, Finding, Fix, FixStatus, Skipped, TargetReport
from rlproof.report import text

FAULT = catalogue()["SUR004"]
WIDTH = 80


def finding(place, message="wrong", severity=Severity.ERROR, **more):
    return Finding(FAULT, severity, place, message, **more)


def report(*findings, **more):
    return FileReport("a.py", (TargetReport("loss", "f", 1),), findings, checked=1, **more)


def full(lines, *findings, width=WIDTH, **more):
    return click.unstyle(
        text.full([report(*findings, **more)], {"a.py": lines}, width)
    ).splitlines()


def excerpt(lines, place, message="wrong", width=WIDTH):
    """The rows of a frame between its two empty margins."""
    rows = full(lines, finding(place, message), width=width)
    bars = [i for i, row in enumerate(rows) if row.rstrip().endswith("|")]
    return rows[bars[0] + 1 : bars[-1]]


def test_frame():
    rows = full(["def f():", "    x = max(a, b)  # why"], finding(Place("f", 2, 2, 4, 17)))
    assert rows[:5] == [
        "a.py:2:5: SUR004 optimistic-clip [error] in f",  # columns count from 1
        "  |",
        "2 |     x = max(a, b)  # why",
        "  |     ^^^^^^^^^^^^^ wrong",
        "  |",
    ]
    assert rows[5].startswith("  why       The clipped objective")
    assert rows[-1] == "Found 1 error: 1 function recognised, 1 judged by running them."
    assert f"  fix       {FAULT.remedy}" in rows
    assert "  more      rlproof explain SUR004" in rows


@pytest.mark.parametrize(
    ("before", "span"),
    [("ß = 'äöü' + ", "max(a)"), ("π = ", "max(π, ρ)"), ("x = '𝛑' * ", "f(x)"), ("", "é")],
)
def test_marks_stand_under_the_span_in_characters(before, span):
    """`ast` counts bytes of UTF-8; ß is two, 𝛑 four, and one character each."""
    place = Place("f", 1, 1, len(before.encode()), len((before + span).encode()))
    shown, marks = excerpt([before + span + "  # tail"], place)[:2]
    start = shown.index(span, 4)  # past the margin "1 | "
    assert marks.index("^") == start
    assert marks.count("^") == len(span)


def test_marks_stand_under_the_span_after_a_tab():
    shown, marks = excerpt(["\tx = 1"], Place("f", 1, 1, 1, 6))
    assert marks.expandtabs().index("^") == shown.expandtabs().index("x")


def test_marks_stand_under_the_span_after_wide_characters():
    before = "x = '漢字'; "
    place = Place("f", 1, 1, len(before.encode()), len((before + "y").encode()))
    _, marks = excerpt([before + "y"], place)
    assert marks.index("^") == 4 + len(before) + 2  # two characters of two cells


def test_multi_line_span_marks_its_last_line():
    lines = ["y = (", "    a +", "    b  # sum", ")"]
    assert excerpt(lines, Place("f", 1, 3, 0, 5)) == [
        "1 | y = (",
        "2 |     a +",
        "3 |     b  # sum",
        "  |     ^ wrong",  # without the comment
    ]


def test_long_span_is_cut_in_the_middle():
    lines = [f"line{i}" for i in range(1, 13)]
    assert excerpt(lines, Place("f", 2, 11, 0, 6)) == [
        " 2 | line2",
        " 3 | line3",
        " … |",
        "11 | line11",
        "   | ^^^^^^ wrong",
    ]
    assert len(excerpt(lines, Place("f", 1, 4, 0, 5))) == 5  # four lines are shown whole


@pytest.mark.parametrize(
    ("lines", "place"),
    [([""], Place("f", 1, 1)), (["a"], Place("f", 5, 5, 0, 3)), (["a"], Place("f", 1, 9, 0, 3))],
)
def test_span_outside_the_text_has_one_mark(lines, place):
    assert excerpt(lines, place)[-1].endswith(" ^ wrong")


def test_long_message_goes_below_the_marks():
    message = "word " * 30
    rows = excerpt(["    x = 1"], Place("f", 1, 1, 4, 9), message.strip())
    assert rows[1] == "  |     ^^^^^"
    assert " ".join(row.strip(" |") for row in rows[2:]) == message.strip()
    assert all(len(row) <= WIDTH for row in rows)


def test_message_beside_the_marks_fits_or_goes_below():
    line = "x" * 70
    rows = excerpt([line], Place("f", 1, 1, 0, 70), "seven c")  # 4 + 70 + 1 + 7 = 82 > 80
    assert rows[1:] == ["  | " + "^" * 70, "  | seven c"]
    rows = excerpt([line], Place("f", 1, 1, 0, 70), "5 cha")  # 4 + 70 + 1 + 5 = 80
    assert rows[1:] == ["  | " + "^" * 70 + " 5 cha"]


def test_evidence():
    evidence = Evidence("one token, A = 1: loss", 0.8, 0.5)
    rows = full(["x"], finding(Place("f", 1, 1, 0, 1), evidence=evidence))
    at = rows.index("  evidence  one token, A = 1: loss")
    assert rows[at + 1] == "            got 0.8   expected 0.5"
    assert not any("evidence" in row for row in full(["x"], finding(Place("f", 1, 1, 0, 1))))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.1 + 0.2, "0.3"),
        (1 / 3, "0.333333"),  # six digits
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        ("ZeroDivisionError", "ZeroDivisionError"),
        ([], "[]"),
        ([1.0] * 8, "[1, 1, 1, 1, 1, 1, 1, 1]"),
        ([1.0] * 9, "[1, 1, 1, 1, 1, 1, 1, 1, …]"),
        ([float("inf"), 0.25], "[inf, 0.25]"),
    ],
)
def test_show(value, shown):
    assert text.show(value) == shown


def test_suggested_edit_shows_its_changed_lines():
    diff = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-    x = max(a)\n+    x = min(a)\n"
    rows = full(["x"], finding(Place("f", 1, 1, 0, 1), fix=Fix(FixStatus.SUGGESTED, "", diff)))
    at = rows.index("  fix       - x = max(a)")
    assert rows[at + 1] == "            + x = min(a)"
    assert FAULT.remedy not in "\n".join(rows)


def test_notes_and_skips_are_lines_after_the_frames():
    note = finding(Place("f", 1, 1), "a note", Severity.NOTE)
    bug = finding(Place("f", 1, 1), "a bug")
    rows = full(["x"], note, bug, skipped=(Skipped("running g", "why"),))
    assert rows[0].startswith("a.py:1:1: SUR004")
    assert rows[-3:] == [
        "note a.py:1: SUR004 a note",
        "skipped a.py: running g: why",
        "Found 1 error, 1 note: 1 function recognised, 1 judged by running them.",
    ]


def test_concise_is_one_line_each():
    found = [finding(Place("f", 3, 4, 2, 5)), finding(Place("f", 9, 9), "w", Severity.WARNING)]
    rows = click.unstyle(text.concise([report(*found)])).splitlines()
    assert rows == [
        "a.py:3:3: SUR004 optimistic-clip [error] wrong",
        "a.py:9:1: SUR004 optimistic-clip [warning] w",
        "Found 1 error, 1 warning: 1 function recognised, 1 judged by running them.",
    ]


@pytest.mark.parametrize("severity", list(Severity))
def test_colour_is_all_that_style_adds(severity):
    styled = text.full(
        [report(finding(Place("f", 1, 1, 0, 1), severity=severity))], {"a.py": ["x"]}, 80
    )
    assert "\x1b[" in styled
    assert "\x1b[" not in click.unstyle(styled)


def test_summary_counts_and_plurals():
    targets = (TargetReport("loss", "f", 1), TargetReport("train", "t", 2))
    clean, idle = FileReport("b.py", targets, checked=2), FileReport("b.py", targets)
    seen = "2 functions recognised, 2 judged by running them."
    assert text.summary([clean]) == f"No faults found: {seen}"
    assert not text.summary([idle]).startswith("No faults")  # nothing judged is not clean
    two = [finding(Place("f", i, i), severity=Severity.WARNING) for i in (1, 2)]
    seen = "3 functions recognised, 3 judged by running them."
    assert text.summary([report(*two), clean]) == f"Found 2 warnings: {seen}"


@pytest.mark.parametrize("width", [60, 80, 120])
def test_prose_keeps_the_width(width):
    rows = full(["x = 1"], finding(Place("f", 1, 1, 0, 5), "word " * 60), width=width)
    assert max(map(len, rows[:-1])) <= width  # the summary is one line
