"""The case corpus: every planted fault found at its line, every healthy twin silent.

Both files of a case are checked at once, each in a child process of its own. Twins that several
cases share are checked once.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rlproof.faults.registry import catalogue
from rlproof.judge.check import check
from rlproof.judge.findings import FileReport, Finding
from rlproof.read.script import read
from tests.cases.reading import Case, Mark, every, marks, parse
from tests.support.sampling import one_in

CASES = every()
SLACK = 1
"""Lines that a finding may be off."""


@pytest.fixture(scope="module")
def threads():
    with ThreadPoolExecutor(2) as made:
        yield made


def report_on(case: Case, which: str, folder: Path) -> FileReport:
    own = folder / which
    own.mkdir()
    return check(read(str(case.write(own, which))))


_TWINS: dict[tuple[str, ...], FileReport] = {}


def healthy_report(case: Case, folder: Path) -> FileReport:
    key = (case.style == "notebook", *case.healthy)
    if key not in _TWINS:
        _TWINS[key] = report_on(case, "healthy", folder)
    return _TWINS[key]


def is_hit(report: FileReport, finding: Finding, mark: Mark) -> bool:
    starts = {cell.number: cell.first for cell in report.cells}
    line = starts[mark.cell] + mark.line - 1 if starts else mark.line
    near = finding.place.line - SLACK <= line <= finding.place.end_line + SLACK
    return (finding.code, str(finding.severity)) == (mark.code, mark.severity) and near


def shown(findings) -> list[str]:
    return [f"{f.place.line}: {f.code} {f.severity} {f.message}" for f in findings]


@pytest.mark.parametrize("case", one_in(8, CASES), ids=lambda case: case.name)
def test_case(case, threads, tmp_path):
    if case.library == "torch":
        pytest.importorskip("torch")
    healthy = threads.submit(healthy_report, case, tmp_path)
    bad = report_on(case, "bad", tmp_path)
    planted = marks(case.bad)
    for mark in planted:
        hits = [f for f in bad.findings if is_hit(bad, f, mark)]
        assert hits, f"{mark} not in {shown(bad.findings)}, skipped {bad.skipped}"
    others = [
        f
        for f in bad.findings
        if f.severity != "note" and not any(is_hit(bad, f, mark) for mark in planted)
    ]
    assert [f.code for f in others if f.code not in case.also] == [], shown(others)
    twin = healthy.result()
    loud = [f for f in twin.findings if f.severity != "note" or f.code in case.codes]
    assert loud == [], shown(loud)
    if case.judged == "run":
        assert twin.checked > 0, f"a twin that is not judged proves nothing: {twin.skipped}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_file(case):
    """The front matter agrees with the marks, the code of the title with the name."""
    assert tuple(dict.fromkeys(mark.code for mark in marks(case.bad))) == case.codes
    assert marks(case.healthy) == []
    assert set(case.codes) | case.also <= set(catalogue())
    assert case.name.startswith(case.codes[0].lower() + "_")
    assert case.bad != case.healthy
    assert case.style == "notebook" or len(case.bad) == len(case.healthy) == 1


def test_a_case_can_be_missed(tmp_path):
    """A mark is no hit two lines away, with another code, or at another severity."""
    report = report_on(next(c for c in CASES if c.name == "sur004_larger_of_two"), "bad", tmp_path)
    finding = next(f for f in report.findings if f.code == "SUR004")
    line = finding.place.line
    assert is_hit(report, finding, Mark(2, line + 1, "error", "SUR004"))
    assert not is_hit(report, finding, Mark(2, line + 2, "error", "SUR004"))
    assert not is_hit(report, finding, Mark(2, line, "warning", "SUR004"))
    assert not is_hit(report, finding, Mark(2, line, "error", "SUR005"))


@pytest.mark.parametrize(
    "change", ["---\n", "style: function\n", "library: lists\n", "## Healthy\n"]
)
def test_a_malformed_case_is_refused(change):
    text = (Path(__file__).parent / "sur004_larger_of_two.md").read_text("utf-8")
    with pytest.raises(ValueError, match="x: "):
        parse("x", text.replace(change, "", 1))
