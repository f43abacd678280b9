"""SARIF 2.1.0: its form, its places, and that its replacements are the edits.

The form is held to what the standard (OASIS, sections 3.13 to 3.58) requires of the properties
that are used here, written down below; the official schema is not part of this repository.
"""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.repairing import repair_text
from tests.support.trainers import trainer

from rlproof.checks import Options, check_paths
from rlproof.faults.model import Evidence, Severity
from rlproof.faults.registry import catalogue
from rlproof.faults.seen import Place
from rlproof.judge.findings import FileReport, Finding, Fix, FixStatus, Replacement, Skipped
from rlproof.read.source import Cell
from rlproof.report.sarif import render

FAULT = catalogue()["SUR004"]
TEXT = {"text": str}
ARTIFACT = {"uri": str}
REGION = {"startLine": int, "endLine": int}
FORM = {
    "$schema": str,
    "version": str,
    "runs": [{
        "tool": {"driver": {"name": str, "version": str, "rules": [{
            "id": str, "name": str, "shortDescription": TEXT, "fullDescription": TEXT,
            "help": {"text": str, "markdown": str}, "defaultConfiguration": {"level": str}}]}},
        "columnKind": str,
        "invocations": [{"executionSuccessful": bool, "toolExecutionNotifications": [
            {"level": str, "message": TEXT,
             "locations?": [{"physicalLocation": {"artifactLocation": ARTIFACT}}]}]}],
        "results": [{
            "ruleId": str, "ruleIndex": int, "level": str, "message": TEXT,
            "locations": [{
                "physicalLocation": {"artifactLocation": ARTIFACT, "region?": REGION},
                "logicalLocations": [{"name": str, "kind": str}]}],
            "fixes?": [{"description": TEXT, "artifactChanges": [{
                "artifactLocation": ARTIFACT,
                "replacements": [{
                    "deletedRegion": {"startLine": int, "startColumn": int,
                                      "endLine": int, "endColumn": int},
                    "insertedContent": TEXT}]}]}]}]}],
}  # fmt: skip


def hold(value, form, where="$"):
    """Every key that must be is there, every other one is known, and all have their type."""
    if isinstance(form, list):
        assert isinstance(value, list), where
        for number, item in enumerate(value):
            hold(item, form[0], f"{where}[{number}]")
    elif isinstance(form, dict):
        known = {key.removesuffix("?"): inner for key, inner in form.items()}
        must = {key for key in form if not key.endswith("?")}
        assert must <= set(value) <= set(known), where
        for key, inner in value.items():
            hold(inner, known[key], f"{where}.{key}")
    else:
        assert type(value) is form, where


def finding(line=2, end=3, fix=None, severity=Severity.ERROR, message="wrong"):
    evidence = Evidence("one token", 0.8, 0.5)
    return Finding(FAULT, severity, Place("f", line, end, 4, 5), message, evidence, fix)


def document(*reports, failures=()):
    found = json.loads(render(reports, failures))
    hold(found, FORM)
    return found["runs"][0]


def test_one_result():
    run = document(FileReport("src/a b.py", findings=(finding(),)))
    (result,) = run["results"]
    assert (result["ruleId"], result["level"]) == ("SUR004", "error")
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "SUR004"
    assert result["message"]["text"] == "wrong\none token: got 0.8, expected 0.5"
    (place,) = result["locations"]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "src/a%20b.py"},
        "region": {"startLine": 2, "endLine": 3},
    }
    assert place["logicalLocations"] == [{"name": "f", "kind": "function"}]
    assert "fixes" not in result


@pytest.mark.parametrize("severity", list(Severity))
def test_levels_are_those_of_the_standard(severity):
    """3.27.10: none, note, warning or error."""
    (result,) = document(FileReport("a.py", findings=(finding(severity=severity),)))["results"]
    assert result["level"] in {"note", "warning", "error"}
    assert result["level"] == str(severity)


def test_what_did_not_run_is_told():
    skipped = (Skipped("running train", "needs `model`"),)
    run = document(FileReport("a.py", skipped=skipped), failures=["b.py: not valid Python"])
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    told = [(n["level"], n["message"]["text"]) for n in invocation["toolExecutionNotifications"]]
    assert told == [
        ("note", "running train: needs `model`"),
        ("error", "b.py: not valid Python"),
    ]


def test_a_notebook_has_its_file_as_place_and_the_cell_in_the_message():
    """Line 2 of the joined source is line 1 of a cell that starts there."""
    report = FileReport("a.ipynb", findings=(finding(),), cells=(Cell(7, 2, 5),))
    (result,) = document(report)["results"]
    assert "region" not in result["locations"][0]["physicalLocation"]
    assert result["message"]["text"].startswith("cell 7, line 1: wrong")


def test_a_file_elsewhere_has_an_absolute_address(tmp_path):
    run = document(FileReport(str(tmp_path / "a.py"), findings=(finding(),)))
    uri = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == f"file://{tmp_path}/a.py"


def test_a_replacement():
    fix = Fix(
        FixStatus.SUGGESTED, "turn it", "d", (), "a choice", (Replacement(2, 5, 2, 8, "min"),)
    )
    (result,) = document(FileReport("a.py", findings=(finding(fix=fix),)))["results"]
    (told,) = result["fixes"]
    assert told["description"]["text"] == "turn it (suggested; a choice)"
    (change,) = told["artifactChanges"]
    assert change["replacements"] == [
        {
            "deletedRegion": {"startLine": 2, "startColumn": 5, "endLine": 2, "endColumn": 8},
            "insertedContent": {"text": "min"},
        }
    ]


def replaced(text, results):
    """The text with every replacement of these results made once, the last place first."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    edits = set()
    for result in results:
        for fix in result.get("fixes", ()):
            for change in fix["artifactChanges"]:
                for one in change["replacements"]:
                    region = one["deletedRegion"]
                    first = starts[region["startLine"] - 1] + region["startColumn"] - 1
                    last = starts[region["endLine"] - 1] + region["endColumn"] - 1
                    edits.add((first, last, one["insertedContent"]["text"]))
    for first, last, put in sorted(edits, reverse=True):
        text = text[:first] + put + text[last:]
    return text


def test_the_replacements_are_the_repair(tmp_path, monkeypatch):
    """Made by hand from the report, they give the text that was verified. é: columns are points."""
    monkeypatch.chdir(tmp_path)
    text = trainer("GEMKO").replace("ratio = ", "é = ratio = ")
    assert "é" in text
    report = repair_text(tmp_path, text)
    strong = [f for f in report.findings if f.severity is not Severity.NOTE]
    run = document(FileReport("script.py", findings=tuple(strong)))
    assert len(run["results"]) >= 2
    assert replaced(text, run["results"]) == report.repair.text


def test_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text(trainer("GERMSKO"), encoding="utf-8")
    options = Options.resolve((), (), None, True, None, "sarif")
    outcome = check_paths(("script.py",), options)
    found = json.loads(outcome.render("sarif", 80))
    hold(found, FORM)
    assert found["version"] == "2.1.0"
    results = found["runs"][0]["results"]
    assert [r["ruleId"] for r in results if r["level"] != "note"] == ["MET001"]
    for result in results:
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert uri == "script.py"


@given(st.text(max_size=30), st.text(min_size=1, max_size=12).filter(lambda t: "\0" not in t))
def test_any_text_and_any_path(message, name):
    """A URI has no space, no control character and no character beyond ASCII (RFC 3986)."""
    name = name.encode("utf-8", "replace").decode()
    run = document(
        FileReport(
            f"x{name}", findings=(finding(message=message.encode("utf-8", "replace").decode()),)
        )
    )
    uri = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert re.fullmatch(r"[A-Za-z0-9%._~/:-]+", uri)


def test_the_form_can_be_missed():
    with pytest.raises(AssertionError):
        hold({"$schema": "", "version": "2.1.0"}, FORM)
    with pytest.raises(AssertionError):
        hold({"startLine": "1", "endLine": 2}, REGION)
