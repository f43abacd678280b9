"""Reports cut into functions: nothing is lost, nothing is told twice."""

from rlproof.faults.registry import catalogue
from rlproof.faults.seen import Place
from rlproof.judge.findings import FileReport, Finding, Skipped, TargetReport
from rlproof.report.bytarget import REST, parts

FAULT = catalogue()["SUR004"]


def finding(function):
    return Finding(FAULT, FAULT.severity, Place(function, 1, 1), "wrong")


def test_every_finding_and_every_skip_is_in_one_part():
    targets = tuple(TargetReport("loss", name, 1) for name in ("f", "g", "f"))
    skipped = (Skipped("running g", "why"), Skipped("the end of f", "hung"), Skipped("x", "y"))
    findings = (finding("f"), finding("g"), finding("h"))
    found = parts(FileReport("a.py", targets, findings, skipped))
    told = [f for part in found for f in part.findings]
    assert sorted(f.place.function for f in told) == ["f", "g", "h"]
    assert sorted(s.check for part in found for s in part.skipped) == sorted(
        s.check for s in skipped
    )
    assert [part.unrun for part in found] == ["", "why", "", ""]
    assert found[-1].name == REST


def test_a_name_that_ends_another_is_not_taken_for_it():
    """`running old loss` is about `old loss`, not about `loss`."""
    targets = tuple(TargetReport("loss", name, 1) for name in ("loss", "old loss"))
    skipped = (Skipped("running old loss", "why"),)
    found = parts(FileReport("a.py", targets, (), skipped))
    assert [len(part.skipped) for part in found] == [0, 1, 0]
