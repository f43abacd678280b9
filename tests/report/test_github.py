"""Workflow commands of GitHub Actions: their form, and that nothing can break out of it.

The escapes are those of GitHub's toolkit: `%`, CR and LF in a message; `:` and `,` as well in a
property.
"""

import os
import re
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlproof.faults.model import Evidence, Severity
from rlproof.faults.registry import catalogue
from rlproof.faults.seen import Place
from rlproof.judge.findings import FileReport, Finding, Skipped
from rlproof.read.source import Cell
from rlproof.report.github import render

FAULT = catalogue()["SUR004"]
COMMAND = re.compile(r"::(error|warning|notice) ((?:\w+=[^,:]*)(?:,\w+=[^,:]*)*)::(.*)")


def finding(message="wrong", severity=Severity.ERROR, evidence=None, line=2, end=3):
    return Finding(FAULT, severity, Place("f", line, end, 4, 5), message, evidence)


def first(report):
    return render([report]).split("\n")[0]


def parsed(line):
    name, properties, message = COMMAND.fullmatch(line).groups()
    given = dict(pair.split("=", 1) for pair in properties.split(","))
    return name, {key: unquote(value) for key, value in given.items()}, unquote(message)


def test_one_annotation():
    evidence = Evidence("one token", 0.8, 0.5)
    line = first(FileReport("src/a.py", findings=(finding(evidence=evidence),)))
    assert line == (
        "::error file=src/a.py,line=2,endLine=3,title=SUR004 optimistic-clip::wrong"
        "%0Aone token: got 0.8, expected 0.5%0ATo repair: take the smaller of the two terms"
    )


@pytest.mark.parametrize(
    ("severity", "name"),
    [(Severity.ERROR, "error"), (Severity.WARNING, "warning"), (Severity.NOTE, "notice")],
)
def test_severities_have_githubs_names(severity, name):
    report = FileReport("a.py", findings=(finding(severity=severity),))
    assert first(report).startswith(f"::{name} ")


def test_a_notebook_has_its_place_in_the_title():
    """Line 2 of the joined source is line 1 of a cell that starts there."""
    report = FileReport("a.ipynb", findings=(finding(),), cells=(Cell(7, 2, 5),))
    _, properties, _ = parsed(first(report))
    assert properties == {"file": "a.ipynb", "title": "SUR004 optimistic-clip (cell 7, line 1)"}


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("./a.py", "a.py"),
        ("src/../a.py", "a.py"),
        (os.path.join(os.getcwd(), "src", "a.py"), "src/a.py"),
        ("/elsewhere/a.py", "/elsewhere/a.py"),
        ("../a.py", "../a.py"),
        ("..a.py", "..a.py"),
    ],
)
def test_paths_are_those_of_the_repository(path, shown):
    assert parsed(first(FileReport(path, findings=(finding(),))))[1]["file"] == shown


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_text_stays_one_command_and_can_be_read_back(text):
    path = "d/" + text.replace("/", "").replace("\0", "") + "x"
    line, *rest = render([FileReport(path, findings=(finding(text),))]).split("\n")
    _, properties, message = parsed(line)
    assert message.split("\nTo repair")[0] == text
    assert properties["file"] == path
    assert len(rest) == 2, "the summary, and the end of the last line"


def test_what_was_skipped_can_not_pose_as_a_command():
    report = FileReport("a.py", skipped=(Skipped("running f", "raised ##[error]x\r::error::y"),))
    line = first(report)
    assert line.startswith("skipped a.py")
    assert "##[" not in line
    assert "\r" not in line


def test_files_that_can_not_be_read_are_annotated_too():
    assert render([], ["a.py:3: not valid Python: x"]).split("\n")[0] == (
        "::error title=rlproof::a.py:3: not valid Python: x"
    )
