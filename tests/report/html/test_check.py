"""The page of a check: what it says of findings, objectives and sources, and its size."""

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from tests.report.reading import Read

from rlproof.checks import Options, check_paths
from rlproof.faults.model import Evidence, Severity
from rlproof.faults.registry import catalogue
from rlproof.faults.seen import Place
from rlproof.judge.findings import (
    FileReport,
    Finding,
    Fix,
    FixStatus,
    Repair,
    Skipped,
    TargetReport,
)
from rlproof.report.html.check import LIMIT, render

BROKEN = Path(__file__).parents[3] / "examples" / "broken_trainer.py"
HOSTILE = "<script>alert(1)</script> ]]> --> </code></pre>"
FAULT = catalogue()["SUR004"]


@pytest.fixture(scope="module")
def broken():
    outcome = check_paths((str(BROKEN),), Options.resolve((), (), None, True, None, "full"))
    return render(outcome.reports, outcome.sources), outcome


def finding(line=1, message="wrong", diff=None, code="SUR004", severity=None):
    evidence = Evidence(f"in {HOSTILE}", "got", [1.0, float("nan")])
    fault = catalogue()[code]
    fix = Fix(FixStatus.SUGGESTED, "", diff) if diff else None
    return Finding(
        fault, severity or fault.severity, Place("f", line, line), message, evidence, fix
    )


def one(*findings, path="a.py", lines=("x = 1", ""), **more):
    return render([FileReport(path, findings=findings, **more)], {path: list(lines)})


def test_the_demo(broken):
    """Every finding has a row, an article and a link to its line; all links lead somewhere."""
    text, outcome = broken
    read = Read(text)
    findings = outcome.reports[0].findings
    assert len(findings) == 12
    for number in range(1, 13):
        assert f"f1-{number}" in read.ids
        assert f"#f1-{number}" in read.links
    for found in findings:
        assert f"f1-src-L{found.place.line}" in read.ids
        assert f"#f1-src-L{found.place.line}" in read.links
        assert found.message in read.words
    assert {link[1:] for link in read.links} <= set(read.ids)
    assert len(read.ids) == len(set(read.ids))


def test_the_demo_is_small_offline_and_in_order(broken):
    text, _ = broken
    assert len(text.encode()) < LIMIT
    headings = Read(text).headings
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(headings))


def test_every_formula_of_the_demo_is_rendered(broken):
    text, _ = broken
    read = Read(text)
    assert read.tags.count("math") > 15
    assert not set("\\&$") & set("".join(read.math))
    assert "maxoperatorname" not in "".join(read.math)


def test_the_whole_source_is_there(broken):
    text, outcome = broken
    code = re.search(r'<figure class="listing">(?:(?!</figure>).)*f1-src-L1".*?</pre>', text, re.S)
    words = Read(f"<div>{code[0][code[0].index('<pre>') :]}</div>").words
    for line in outcome.sources[str(BROKEN)]:
        assert line in words


def test_the_demo_has_its_charts(broken):
    text, _ = broken
    read = Read(text)
    titles = [a["data-about"] for t, a in read.attributes if t == "figure" and "data-about" in a]
    assert [title.split(".")[0] for title in titles] == [
        "Advantage in a group of 8", "Surrogate of one token",
        "Its slope: how hard a token is pushed", "Divergence term of one token at β = 1",
    ]  # fmt: skip
    assert "repaired, A = -1" in read.words


def test_a_finding_shows_evidence_formula_edit_and_explanation():
    diff = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
    text = one(finding(diff=diff))
    words = Read(text).words
    assert "Got" in words
    assert "[1, nan]" in words
    assert "<del>-x = 1\n</del>" in text
    assert "<ins>+x = 2\n</ins>" in text
    assert "instead of" in words
    assert "lower bound" in words  # of the fault's page
    assert "What to do" not in words


def test_a_repair_shows_its_patch_its_level_and_what_else_would_do():
    patch = f"--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = '{HOSTILE}'\n"
    other = ((f"or {HOSTILE}", patch.replace("x = '", "y = '")),)
    repair = Repair(FixStatus.VERIFIED, "x = 2\n", patch, 70, 70, other)
    text = one(finding(), repair=repair)
    words = Read(text).words
    assert "verified: 70 of 70 cases." in words
    assert "<ins>+x = &#39;&lt;script&gt;" in text.replace("&#x27;", "&#39;")
    assert "<script>alert" not in text
    assert "As right: or" in words


def test_a_finding_without_an_edit_shows_its_lines_and_the_remedy():
    words = Read(one(finding())).words
    assert f"What to do: {FAULT.remedy}." in words
    assert "Suggested edit" not in words


def test_the_worst_comes_first_and_is_the_verdict():
    found = (finding(1, code="MET001", severity=Severity.NOTE), finding(2, code="SUR004"))
    text = one(*found, lines=["a", "b", ""])
    assert text.index('id="f1-1">SUR004') < text.index('id="f1-2">MET001')
    assert '<p class="error">' in text


@pytest.mark.parametrize(
    ("more", "tone"), [({"checked": 1}, "good"), ({}, "note")], ids=["clean", "not judged"]
)
def test_without_findings(more, tone):
    assert f'<p class="{tone}">' in one(**more)


def test_skipped_checks_and_their_reasons():
    words = Read(one(skipped=(Skipped("running train", f"needs {HOSTILE}"),))).words
    assert "Not checked" in words
    assert f"needs {HOSTILE}" in words


def test_files_that_could_not_be_checked():
    words = Read(render([], {}, failures=["gone.py: no such file"])).words
    assert "gone.py: no such file" in words


def test_an_objective_with_its_coordinates():
    point = {"ratio": "token", "surrogate": "dual-clip", "cap": 3.0, "clip_low": 0.2,
             "clip_high": 0.2, "surrogate_weight": -1.0, "aggregation": "token-mean",
             "divergence": "none"}  # fmt: skip
    text = one(targets=(TargetReport("loss", "f", 1, point, "grpo"),))
    words = Read(text).words
    assert "dual-clip" in words
    assert "f computes" in words
    assert text.count('<div class="formula">') == 6  # L, w, s, ρ, bounds, constants


@pytest.mark.parametrize("alias", ["dapo", "DAPO", None, "auto"])
def test_the_declared_objective_is_named(alias):
    text = render([FileReport("a.py")], {"a.py": [""]}, alias)
    assert ("Declared objective: dapo." in text) == (alias not in (None, "auto"))


def test_hostile_names_code_and_messages_are_text():
    path = f"a\n{HOSTILE}\udcff\x1b.py"
    lines = [f"x = '{HOSTILE}'  # {HOSTILE}", "\x00\x1b[31m", ""]
    diff = f"--- a/{HOSTILE}\n+++ b/x\n@@ -1 +1 @@\n-{HOSTILE}\n+{HOSTILE}\n"
    text = one(
        finding(1, HOSTILE, diff), finding(2, HOSTILE), path=path, lines=lines,
        targets=(TargetReport(HOSTILE, HOSTILE, 1, {"ratio": HOSTILE, "surrogate": HOSTILE}),),
        skipped=(Skipped(HOSTILE, HOSTILE),),
    )  # fmt: skip
    read = Read(text)
    assert "script" not in read.tags
    assert HOSTILE in read.words
    assert not re.search("[\x00-\x08\x0b-\x1f\ud800-\udfff]", text)
    text.encode()


def test_a_place_outside_of_the_file_does_no_harm():
    text = one(finding(99), lines=["x"])
    assert "f1-src-L99" not in text


@pytest.mark.parametrize(
    ("files", "findings", "lines"), [(1, 3, 30_000), (1, 2_000, 2_000), (400, 2, 40)]
)
def test_a_page_never_grows_beyond_its_limit(files, findings, lines):
    """What is left out is said."""
    source = ["value = some_function(argument, another)  # a comment"] * lines
    found = tuple(finding(n % lines + 1, f"message {n} " + "w" * 2000) for n in range(findings))
    reports = [FileReport(f"file{n}.py", findings=found) for n in range(files)]
    text = render(reports, {report.path: source for report in reports})
    assert len(text.encode()) < LIMIT
    assert "Shortened, to keep this file small" in text
    Read(text)


def test_files_can_be_more_than_fit():
    reports = [FileReport(f"{'long' * 500}{n}.py", checked=1) for n in range(2_000)]
    text = render(reports, {report.path: ["x"] for report in reports})
    assert len(text.encode()) < LIMIT
    assert re.search(r"\d+ files", text)


def test_severities_have_tones():
    for severity in Severity:
        assert f"p.{severity}" in one()


def run(*args, **more):
    command = [sys.executable, "-m", "rlproof", "check", "--format", "html", *args]
    return subprocess.run(command, capture_output=True, check=False, **more)


def test_command(tmp_path):
    """To standard output and to a file: the same bytes, in UTF-8 wherever it goes."""
    out = tmp_path / "report.html"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    first = run(str(BROKEN), env=environment)
    second = run(str(BROKEN), "-o", str(out))
    assert (first.returncode, second.returncode) == (1, 1)
    assert second.stdout == b""
    assert first.stdout == out.read_bytes()
    assert first.stdout.startswith(b"<!DOCTYPE html>")
    assert "π_old" in first.stdout.decode()


def test_command_for_a_file_that_is_not_there(tmp_path):
    result = run(str(tmp_path / "gone.py"))
    assert result.returncode == 2
    assert b"no such file" in result.stdout
    assert b"no such file" in result.stderr
