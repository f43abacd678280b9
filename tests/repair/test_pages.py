"""The planted case of every page is repaired, verified, and stays repaired."""

import pytest
from tests.faults.test_pages import CODES
from tests.support.checking import strong
from tests.support.repairing import repair_text
from tests.support.sampling import one_in

from rlproof.faults.model import Severity
from rlproof.faults.page import page
from rlproof.faults.registry import catalogue
from rlproof.judge.findings import FixStatus

READ = "found by reading: what can't be run here can't be verified"
NOT_REPAIRED = {
    "AGG001": "its policy has a `sample` of its own, which no stand-in has",
    "AGG002": READ,
    "LOP005": READ,
    "OBJ002": READ,
    "ADV003": "how many completions a prompt gets is not written anywhere",
    "AGG003": READ,
    "LOP008": READ,
    "OBJ003": "either of two implementations may be the one that is meant",
    "RWD001": "what a task rewards is the script's to say",
    "RWD002": "what a task rewards is the script's to say",
    "RWD003": "what a task rewards is the script's to say",
    "SUR016": "the old log-probs are not at hand: callers would have to give them",
}
NOTES = {c for c, fault in catalogue().items() if fault.severity is Severity.NOTE}
NOTES |= {"LOP010"}  # the page's case is the note, not the error


REPAIRED = sorted(set(CODES) - set(NOT_REPAIRED) - NOTES)


@pytest.mark.parametrize("code", one_in(12, REPAIRED))
def test_planted_case_is_repaired(tmp_path, code):
    text = page(code).planted
    if "import torch" in text:
        pytest.importorskip("torch")
    report = repair_text(tmp_path, text)
    assert report.repair.status is FixStatus.VERIFIED
    assert report.repair.passed == report.repair.cases
    [fix] = {f.fix for f in report.findings if f.code == code}
    assert fix.status is FixStatus.VERIFIED
    assert strong(report.repair.after) == []


@pytest.mark.parametrize("code", one_in(6, sorted(NOT_REPAIRED)))
def test_a_matter_of_choice_is_not_written(tmp_path, code):
    text = page(code).planted
    if "import torch" in text:
        pytest.importorskip("torch")
    report = repair_text(tmp_path, text)
    assert report.repair.status is FixStatus.SUGGESTED
    assert report.repair.text == text
    assert report.repair.patch == ""


def test_a_number_from_elsewhere_is_written_and_says_where_from(tmp_path):
    pytest.importorskip("torch")
    report = repair_text(tmp_path, page("SUR007").planted)
    [fix] = [f.fix for f in report.findings if f.code == "SUR007"]
    assert (fix.status, fix.note) == (FixStatus.VERIFIED, "")
    assert "0.2 is the range of PPO and GRPO" in fix.chosen


def test_the_choice_says_why(tmp_path):
    report = repair_text(tmp_path, page("ADV003").planted)
    [fix] = [f.fix for f in report.findings if f.code == "ADV003"]
    assert fix.status is FixStatus.SUGGESTED
    assert "how many completions a prompt gets" in fix.note


def test_every_error_and_warning_is_accounted_for():
    from rlproof.repair.candidates import MAKERS

    without = set(CODES) - set(MAKERS) - NOTES
    assert without == {  # see docs/repair.md
        "AGG002", "AGG003", "LOP008", "OBJ003", "RWD001", "RWD002", "RWD003",
    }  # fmt: skip
