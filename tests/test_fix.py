"""`check --fix` and `check --diff`: what is printed, what is written, which exit code."""

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from rlproof.cli import main
from rlproof.faults.page import page
from tests.support.trainers import trainer

ONE = page("SUR001").planted


def run(*arguments):
    return CliRunner().invoke(main, ["check", *map(str, arguments)])


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path("my script.py")
    path.write_text(ONE)
    return path


def test_diff_is_a_patch_that_git_takes(script):
    result = run("--diff", script)
    assert result.exit_code == 1
    assert script.read_text() == ONE
    assert result.stderr.startswith("my script.py: verified: ")
    subprocess.run(["git", "apply", "-"], input=result.stdout_bytes, check=True)
    assert run(script).exit_code == 0
    assert "math.exp(new_logps[i][t] - old_logps[i][t])" in script.read_text()


def test_fix_writes_what_diff_shows_and_then_nothing(script):
    patch = run("--diff", script).stdout_bytes
    subprocess.run(["git", "apply", "-"], input=patch, check=True)
    shown = script.read_bytes()
    script.write_text(ONE)
    result = run("--fix", script)
    assert result.exit_code == 0, "nothing is left"
    assert script.read_bytes() == shown
    assert "fixed 1 finding, verified" in result.stderr
    assert "SUR001" not in result.stdout
    before = script.stat()
    again = run("--fix", script)
    assert again.exit_code == 0
    assert (script.stat().st_mtime_ns, script.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


@pytest.mark.parametrize(
    "data",
    [
        ONE.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + ONE.encode(),
        ("# coding: latin-1\n# caf\xe9\n" + ONE).encode("latin-1"),
        ONE.rstrip("\n").encode(),
    ],
    ids=["crlf", "bom", "latin-1", "no final newline"],
)
def test_other_bytes_stay_and_the_patch_applies(script, data):
    script.write_bytes(data)
    patch = run("--diff", script).stdout_bytes
    assert run("--fix", script).exit_code == 0
    fixed = script.read_bytes()
    script.write_bytes(data)
    subprocess.run(["git", "apply", "-"], input=patch, check=True)
    assert script.read_bytes() == fixed
    old, new = data.split(b"\n"), fixed.split(b"\n")
    assert [a for a, b in zip(old, new, strict=True) if a != b] == [
        line for line in old if b"# error" in line
    ]


def test_a_repair_that_leaves_something_is_shown_and_not_written(script):
    """How many completions a prompt gets is a choice; the ratio is repaired."""
    text = page("ADV003").planted + "\n\n" + ONE
    script.write_text(text)
    result = run("--fix", script)
    assert result.exit_code == 1
    assert script.read_text() == text
    assert (
        "a partial repair, not written (left: ADV003 in prepare: how many completions"
        in result.stderr
    )
    assert "+                ratio = math.exp(" in run("--diff", script).stdout
    [file] = json.loads(run("--diff", script, "--format", "json").stdout)["files"]
    fixes = {f["code"]: f["fix"] for f in file["findings"] if f["severity"] != "note"}
    assert fixes["SUR001"]["status"] == file["repair"]["status"] == "partial"
    assert fixes["ADV003"]["status"] == "suggested"
    assert "how many completions" in fixes["ADV003"]["note"]
    assert "not written: how many completions" in run("--diff", script, "--format", "full").stdout


def test_a_fault_that_a_repair_uncovers_keeps_it_partial(script):
    """With the sign turned round, groups of one member are not recognised as such."""
    text = page("ADV003").planted.replace("(reward - mean)", "(mean - reward)")
    script.write_text(text)
    assert "left: ADV003 in prepare" in run("--fix", script).stderr
    assert script.read_text() == text


def test_json_of_a_verified_repair(script):
    script.write_text(trainer("GERKOC"))
    result = run("--diff", script, "--format", "json")
    [file] = json.loads(result.stdout)["files"]
    assert "as right: negate both terms and keep max" in result.stderr
    repair = file["repair"]
    assert (repair["status"], repair["written"]) == ("verified", False)
    assert repair["passed"] == repair["cases"] > 60
    assert repair["diff"].startswith("--- a/my script.py\t\n+++ b/my script.py\t\n@@ ")
    fixes = {f["code"]: f["fix"] for f in file["findings"] if f["severity"] == "error"}
    assert {code: fix["status"] for code, fix in fixes.items()} == {
        "SUR004": "verified",
        "SUR005": "verified",
    }
    assert all(len(fix["alternatives"]) == 1 for fix in fixes.values())
    assert file["fixed"] == []


def test_json_after_writing(script):
    [file] = json.loads(run("--fix", script, "--format", "json").stdout)["files"]
    assert [f["code"] for f in file["fixed"]] == ["SUR001"]
    assert [f for f in file["findings"] if f["severity"] != "note"] == []
    assert file["repair"]["written"] is True


@pytest.mark.parametrize("style", ["full", "html", "concise"])
def test_reports_show_the_patch(script, style):
    result = run("--diff", "--format", style, script)
    assert result.exit_code == 1
    shown = result.stdout.replace("&#39;", "'")
    if style != "concise":
        assert "math.exp(new_logps[i][t] - old_logps[i][t])" in shown
        assert "verified: " in shown


def test_select_limits_what_is_repaired(script):
    script.write_text(trainer("GERKO"))
    assert run("--fix", "--select", "MET001", script).exit_code == 0
    text = script.read_text()
    assert "clip_eps=loss_kwargs" in text
    assert "max(plain, clipped)" in text


def test_without_a_run_there_is_no_repair(script):
    result = run("--fix", "--no-run", script)
    assert result.exit_code == 2
    assert "leave --no-run out" in result.stderr
    assert script.read_text() == ONE


def test_an_output_file_takes_the_patch(script):
    assert run("--diff", "-o", "fix.patch", script).exit_code == 1
    subprocess.run(["git", "apply", "fix.patch"], check=True)
    assert run(script).exit_code == 0


def test_nothing_recognisable_is_still_5(script):
    script.write_text("x = 1\n")
    assert run("--fix", script).exit_code == 5


def test_sarif_carries_the_repair(script):
    found = json.loads(run("--diff", "--format", "sarif", script).stdout)
    fixes = [fix for r in found["runs"][0]["results"] for fix in r.get("fixes", ())]
    assert any("(verified)" in fix["description"]["text"] for fix in fixes)
