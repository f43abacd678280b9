"""JUnit XML: its form, its counts, and that no text can break out of it.

The form is what junit-10.xsd of Jenkins' xunit plugin allows of the elements and attributes used
here, written down below; the schema itself is not part of this repository. XML 1.0 is what the
parser of the standard library (expat) takes.
"""

import xml.etree.ElementTree as ET

from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from rlproof.cli import main
from rlproof.faults.model import Evidence, Severity
from rlproof.faults.page import page
from rlproof.faults.registry import catalogue
from rlproof.faults.seen import Place
from rlproof.judge.findings import FileReport, Finding, Skipped, TargetReport
from rlproof.read.source import Cell
from rlproof.report.junit import render

FAULT = catalogue()["SUR004"]
COUNTS = {"tests", "failures", "errors", "skipped"}
FORM = {  # element: its attributes, and the children it may have, in this order
    "testsuites": ({"name", *COUNTS} - {"skipped"}, ["testsuite"]),
    "testsuite": ({"name", "file", *COUNTS}, ["testcase"]),
    "testcase": ({"name", "classname"}, ["skipped", "error", "failure", "system-out"]),
    "failure": ({"message", "type"}, []),
    "error": ({"message", "type"}, []),
    "skipped": ({"message"}, []),
    "system-out": (set(), []),
}


def hold(element):
    """Only known attributes and children, and these in the order of the schema."""
    attributes, children = FORM[element.tag]
    assert set(element.attrib) <= attributes
    order = [children.index(child.tag) for child in element]
    assert order == sorted(order)
    for child in element:
        hold(child)
    if element.tag.startswith("testsuite"):
        for kind in COUNTS & attributes:
            inside = {"tests": "testcase", "failures": "failure", "errors": "error"}
            assert int(element.get(kind)) == len(list(element.iter(inside.get(kind, kind))))


def finding(message="wrong", severity=Severity.ERROR, function="f", evidence=None):
    return Finding(FAULT, severity, Place(function, 2, 2, 4, 5), message, evidence)


def report(*findings, skipped=(), cells=(), path="a.py", names=("f", "g")):
    targets = tuple(TargetReport("loss", name, n) for n, name in enumerate(names, 1))
    return FileReport(path, targets, findings, skipped, cells=cells)


def parsed(*reports, failures=()):
    lines = ["def f(x):", "    y = x", "", ""]
    text = render(reports, {r.path: lines for r in reports}, failures)
    tree = ET.fromstring(text.encode())
    hold(tree)
    return {case.get("name"): case for case in tree.iter("testcase")}


def tags(case):
    return [child.tag for child in case]


def test_a_function_with_an_error_fails_and_another_passes():
    cases = parsed(report(finding(evidence=Evidence("one token", 0.8, 0.5))))
    assert {name: tags(case) for name, case in cases.items()} == {
        "loss f": ["failure"],
        "loss g": [],
    }
    failure = cases["loss f"][0]
    assert failure.attrib == {"message": "wrong", "type": "SUR004"}
    assert "a.py:2:5: SUR004 optimistic-clip [error] in f" in failure.text
    assert "got 0.8   expected 0.5" in failure.text


def test_several_findings_of_a_function_are_one_failure():
    cases = parsed(report(finding("one"), finding("two", Severity.WARNING)))
    assert tags(cases["loss f"]) == ["failure"]
    assert cases["loss f"][0].get("message") == "one; two"


def test_a_note_fails_nothing():
    cases = parsed(report(finding("look here", Severity.NOTE)))
    assert tags(cases["loss f"]) == ["system-out"]
    assert "look here" in cases["loss f"][0].text


def test_a_function_that_could_not_be_run_is_skipped():
    cases = parsed(report(skipped=(Skipped("running g", "no probe fits"),)))
    assert cases["loss g"][0].attrib == {"message": "no probe fits"}
    assert tags(cases["loss f"]) == []


def test_what_belongs_to_no_function_is_a_test_of_the_file():
    cases = parsed(report(finding(function="elsewhere")))
    assert tags(cases["file"]) == ["failure"]
    assert tags(cases["loss f"]) == []


def test_a_file_that_could_not_be_checked_is_an_error():
    cases = parsed(report(), failures=("b.py: no such file",))
    assert cases["file 1"][0].get("message") == "b.py: no such file"


def test_two_targets_of_one_name_are_told_apart():
    assert set(parsed(report(names=("f", "f")))) == {"loss f", "loss f #2"}


def test_places_of_a_notebook_are_cells():
    """Line 2 of the joined source is line 1 of a cell that starts there."""
    cases = parsed(report(finding(), cells=(Cell(7, 2, 5),), path="a.ipynb"))
    assert "a.ipynb:cell 7, line 1:5" in cases["loss f"][0].text


@given(st.text(st.characters(codec=None)))
def test_no_text_breaks_the_document(text):
    """Whatever stands in messages, paths and reasons: control characters are spelt out."""
    found = finding(f"<{text}]]>", evidence=Evidence(f"]]>{text}", text, "&"))
    case = parsed(report(found, skipped=(Skipped("x", text),), path=f"{text}.py"))["loss f"]
    allowed = "".join(c for c in text if c in "\t\n\r" or c.isprintable())
    message = case[0].get("message")
    assert message.startswith("<")
    if allowed == text:
        assert message == f"<{text}]]>"


def test_control_characters_are_spelt_out():
    """XML 1.0 has no spelling for these; the parser would refuse `&#27;` too."""
    case = parsed(report(finding("\x1b[31m\0\ufffe\ud800")))["loss f"]
    assert case[0].get("message") == r"\x1b[31m\x00\ufffe\ud800"


def test_the_command_writes_the_same_bytes_twice(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(page("SUR004").planted, encoding="utf-8")
    written = []
    for name in ("one.xml", "two.xml"):
        command = ["check", "--format", "junit", "-o", name, "train.py"]
        assert CliRunner().invoke(main, command).exit_code == 1
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1]
    tree = ET.fromstring(written[0])
    hold(tree)
    assert [f.get("type") for f in tree.iter("failure")] == ["SUR004"]
