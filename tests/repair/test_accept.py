"""A comment that accepts a finding: put where it counts, or not at all."""

import pytest

from rlproof.faults.page import page
from rlproof.faults.registry import catalogue
from rlproof.faults.seen import Place
from rlproof.judge.check import check
from rlproof.judge.findings import Finding
from rlproof.read.script import script_of
from rlproof.read.source import of_text
from rlproof.repair.accept import accepting

FAULT = catalogue()["KLD003"]


def insertion(text, line, end_line=None):
    finding = Finding(FAULT, FAULT.severity, Place("f", line, end_line or line), "wrong")
    return accepting(of_text("s.py", text), finding)


def after(text, line, end_line=None):
    one = insertion(text, line, end_line)
    lines = text.split("\n")
    old = lines[one.line - 1]
    lines[one.line - 1] = old[: one.column - 1] + one.text + old[one.end_column - 1 :]
    return "\n".join(lines)


@pytest.mark.parametrize(("before", "expected"), [
    ("x = 1", "x = 1  # rlproof: ignore[KLD003]"),
    ("x = 1  ", "x = 1  # rlproof: ignore[KLD003]  "),
    ("x = 1  # why", "x = 1  # why  # rlproof: ignore[KLD003]"),
    ("x = 1  # rlproof: ignore[SUR004]", "x = 1  # rlproof: ignore[SUR004, KLD003]"),
    ("x = 1  # rlproof: ignore[]", "x = 1  # rlproof: ignore[KLD003]"),
    ("x = 1  # rlproof: ignore", "x = 1  # rlproof: ignore  # rlproof: ignore[KLD003]"),
    ("x = '# rlproof: ignore[A]'", "x = '# rlproof: ignore[A]'  # rlproof: ignore[KLD003]"),
])  # fmt: skip
def test_behind_the_code_or_in_a_list_that_is_there(before, expected):
    assert after(before + "\n", 1) == expected + "\n"


def test_on_the_last_line_where_the_first_can_have_none():
    text = "x = 1 + \\\n    2\n"
    assert after(text, 1, 2) == "x = 1 + \\\n    2  # rlproof: ignore[KLD003]\n"
    text = 'x = """\nabc\n"""\n'
    assert after(text, 1, 3) == 'x = """\nabc\n"""  # rlproof: ignore[KLD003]\n'


def test_none_where_no_comment_can_stand():
    assert insertion('x = """\nabc\n"""\n', 2) is None
    assert insertion("x = 1 + \\\n    2 + \\\n    3\n", 2) is None


def test_a_comment_accepts_the_finding_that_it_was_made_for():
    text = page("KLD007").planted
    script = script_of(of_text("s.py", text))
    (finding,) = check(script, run=False).findings
    one = accepting(script.source, finding)
    lines = text.split("\n")
    lines[one.line - 1] = lines[one.line - 1][: one.column - 1] + one.text
    report = check(script_of(of_text("s.py", "\n".join(lines))), run=False)
    assert report.findings == ()
    assert [f.code for f in report.ignored] == ["KLD007"]
