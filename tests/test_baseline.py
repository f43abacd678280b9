"""Known findings: what stays known, what is new, what is gone."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from rlproof.cli import main
from rlproof.faults.page import page
from tests.docs.test_schema import VALIDATOR

SUR, KLD = page("SUR004").planted, page("KLD002").planted


def run(*arguments):
    return CliRunner().invoke(main, ["check", *arguments])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "one.py").write_text(SUR, "utf-8")
    monkeypatch.chdir(tmp_path)
    result = run("one.py", "--write-baseline", "known.json")
    assert result.exit_code == 0, result.output
    return tmp_path


def codes(result):
    document = json.loads(result.stdout)
    VALIDATOR.validate(document)
    strong = [
        (key, f["code"])
        for file in document["files"]
        for key in ("findings", "known")
        for f in file.get(key, [])
        if f["severity"] != "note"
    ]
    return result.exit_code, strong


def test_what_is_written_is_known(folder):
    assert codes(run("one.py", "--format", "json")) == (1, [("findings", "SUR004")])
    result = run("one.py", "--format", "json", "--baseline", "known.json")
    assert codes(result) == (0, [("known", "SUR004")])
    text = run("one.py", "--baseline", "known.json").stdout
    assert "known by the baseline" in text
    assert "SUR004" not in text


def test_the_file_is_the_same_bytes_and_names_no_line(folder):
    first = Path("known.json").read_bytes()
    run("one.py", "--write-baseline", "again.json")
    assert Path("again.json").read_bytes() == first
    document = json.loads(first)
    assert document["schema"] == 1
    assert {frozenset(entry) for entry in document["findings"]} == {
        frozenset({"path", "code", "function", "text", "count"})
    }


def test_moved_lines_stay_known_and_edited_ones_are_new(folder):
    moved = "# a line\n\n" + SUR.replace("\n\n\n", "\n\n\n\n# more\n\n\n")
    Path("one.py").write_text(moved, "utf-8")
    assert run("one.py", "--baseline", "known.json").exit_code == 0
    [line] = [line for line in SUR.split("\n") if "# error: SUR004" in line]
    edited = SUR.replace(line, line.replace("# error", "#  an edit").replace("SUR004", ""))
    assert edited != SUR
    Path("one.py").write_text(edited, "utf-8")
    result = run("one.py", "--format", "json", "--baseline", "known.json")
    assert result.exit_code == 1
    assert "1 finding of it is gone: SUR004 in one.py" in result.stderr


def test_a_second_one_like_it_is_new(folder):
    """Two files: the same finding elsewhere is not known; `count` holds for one function."""
    Path("two.py").write_text(SUR, "utf-8")
    result = run("one.py", "two.py", "--format", "json", "--baseline", "known.json")
    assert codes(result) == (1, [("known", "SUR004"), ("findings", "SUR004")])
    document = json.loads(Path("known.json").read_text("utf-8"))
    for entry in document["findings"]:
        entry["count"] = 2
    Path("known.json").write_text(json.dumps(document), "utf-8")
    result = run("one.py", "--baseline", "known.json", "--select", "SUR004")
    assert result.exit_code == 0
    assert "1 finding of it is gone" in result.stderr


def test_repaired_findings_are_told_in_one_line_and_only_where_they_were_looked_for(folder):
    Path("one.py").write_text(page("SUR004").healthy, "utf-8")
    told = run("one.py", "--baseline", "known.json", "--select", "SUR").stderr.splitlines()
    assert len(told) == 1
    assert told[0].startswith("known.json: 1 finding of it is gone: SUR004 in one.py")
    for options in (["--select", "KLD"], ["--no-run"]):
        assert run("one.py", "--baseline", "known.json", *options).stderr == ""
    Path("two.py").write_text(SUR, "utf-8")
    assert run("two.py", "--baseline", "known.json").stderr == "", "one.py was not checked"
    Path("one.py").unlink()
    assert "gone: " in run("two.py", "--baseline", "known.json").stderr


def test_the_setting_is_from_the_folder_of_pyproject(folder, monkeypatch):
    Path("pyproject.toml").write_text('[tool.rlproof]\nbaseline = "known.json"\n', "utf-8")
    inner = folder / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    assert run("../one.py").exit_code == 0
    Path("../one.py").write_text(KLD, "utf-8")
    assert run("../one.py").exit_code == 1
    assert run("../one.py", "--write-baseline", "../known.json").exit_code == 0
    assert run("../one.py").exit_code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no such file; `rlproof check --write-baseline"),
        ("{", "not a baseline that can be read"),
        ("[]", "not a baseline that can be read"),
        ('{"schema": 1, "findings": [{"path": 1}]}', "not a baseline that can be read"),
        ('{"schema": 2, "findings": []}', "schema 2 is not 1"),
        ("\ud800", "not a baseline that can be read"),
    ],
)
def test_a_baseline_that_is_none_is_refused(folder, text, message):
    if text is None:
        Path("known.json").unlink()
    else:
        Path("known.json").write_bytes(text.encode(errors="surrogatepass"))
    result = run("one.py", "--baseline", "known.json")
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_nothing_is_written_where_a_file_can_not_be_read(folder):
    before = Path("known.json").read_bytes()
    Path("bad.py").write_text("def f(:\n", "utf-8")
    assert run("one.py", "bad.py", "--write-baseline", "known.json").exit_code == 2
    assert Path("known.json").read_bytes() == before
    assert run("one.py", "--write-baseline", "x", "--baseline", "known.json").exit_code == 2
    assert not Path("x").exists()


def test_sarif_has_known_findings_as_suppressed(folder):
    text = run("one.py", "--baseline", "known.json", "--format", "sarif").stdout
    kinds = {tuple(s["kind"] for s in r.get("suppressions", []))
             for r in json.loads(text)["runs"][0]["results"]}  # fmt: skip
    assert kinds == {("external",)}
