"""Every page's example is found where its comment says, and its healthy twin is silent."""

import re

import pytest
from tests.support.checking import check_text
from tests.support.sampling import one_in

from rlproof.faults.page import HEADINGS, page, parse
from rlproof.faults.registry import catalogue

MARKER = re.compile(r"#\s*(error|warning|note):\s*([A-Z]{3}\d{3})\s*$")
CODES = list(catalogue())


def markers(script: str) -> list[tuple[int, str, str]]:
    return [
        (number, found[1], found[2])
        for number, line in enumerate(script.split("\n"), 1)
        if (found := MARKER.search(line))
    ]


@pytest.mark.parametrize("code", one_in(3, CODES))
def test_planted_case_is_found_at_its_line_and_nothing_else(tmp_path, code):
    script = page(code).planted
    [(line, severity, marked)] = markers(script)
    report = check_text(tmp_path, script)
    hits = [f for f in report.findings if f.code == code]
    assert marked == code
    assert [(f.severity, f.place.line <= line <= f.place.end_line) for f in hits] == [
        (severity, True)
    ]
    assert [f.code for f in report.findings if f.severity != "note" and f.code != code] == []
    assert hits[0].evidence is not None


@pytest.mark.parametrize("code", one_in(3, CODES))
def test_healthy_twin_is_silent(tmp_path, code):
    script = page(code).healthy
    assert markers(script) == []
    report = check_text(tmp_path, script)
    assert [f.code for f in report.findings if f.severity != "note" or f.code == code] == []
    assert report.checked > 0, "a twin that is not judged proves nothing"


@pytest.mark.parametrize("code", CODES)
def test_title_names_the_fault(code):
    assert page(code).title == f"{code} {catalogue()[code].name}"


def test_marker_pattern_can_fail():
    assert markers("x = 1  # error: SUR001") == [(1, "error", "SUR001")]
    assert markers("x = 1  # SUR001") == []


@pytest.mark.parametrize("change", ["## Fix safety\n", "## References\n"])
def test_a_missing_heading_is_refused(change):
    text = page("SUR004").markdown.replace(change, "")
    with pytest.raises(ValueError, match="has headings"):
        parse(text)


def test_an_empty_section_is_refused():
    text = "# X\n" + "".join(f"## {heading}\n\n" for heading in HEADINGS)
    with pytest.raises(ValueError, match="has nothing under"):
        parse(text)
