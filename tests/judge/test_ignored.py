"""Findings that comments accept: where a comment may stand, and what is said of idle ones."""

import json

import pytest
from click.testing import CliRunner
from tests.docs.test_schema import VALIDATOR

from rlproof.cli import main
from rlproof.faults.page import page

SCRIPT = page("SUR004").planted
LINE = next(n for n, line in enumerate(SCRIPT.split("\n")) if "# error: SUR004" in line)
DEF = max(n for n, line in enumerate(SCRIPT.split("\n")[:LINE]) if line.startswith("def "))


def with_comment(comment, line=LINE, text=SCRIPT):
    lines = text.replace("  # error: SUR004", "").split("\n")
    lines[line] += f"  {comment}"
    return "\n".join(lines)


def checked(tmp_path, text, *options, name="script.py"):
    path = tmp_path / name
    path.write_text(text, "utf-8")
    result = CliRunner().invoke(main, ["check", str(path), "--format", "json", *options])
    document = json.loads(result.stdout)
    VALIDATOR.validate(document)
    [file] = document["files"]
    return result.exit_code, file


def found(file, key="findings"):
    return [f["code"] for f in file.get(key, []) if f["severity"] != "note"]


def test_the_script_has_the_fault_without_a_comment(tmp_path):
    code, file = checked(tmp_path, SCRIPT)
    assert (code, found(file)) == (1, ["SUR004"])
    assert not {"ignored", "unused_ignores"} & set(file)


@pytest.mark.parametrize("line", [LINE, DEF])
@pytest.mark.parametrize(
    "comment",
    [
        "# rlproof: ignore[SUR004]",
        "# rlproof: ignore[optimistic-clip]",
        "#rlproof:ignore[KLD002, sur004]",
        "# noqa: E501  # rlproof: ignore[SUR004] (an experiment)",
    ],
)
def test_a_comment_on_the_line_or_the_def_accepts_the_finding(tmp_path, comment, line):
    code, file = checked(tmp_path, with_comment(comment, line))
    assert (code, found(file), found(file, "ignored")) == (0, [], ["SUR004"])


def test_what_a_string_says_is_no_comment(tmp_path):
    lines = with_comment("", DEF).split("\n")
    lines.insert(DEF + 1, '    said = "# rlproof: ignore[SUR004]"; text = said')
    code, file = checked(tmp_path, "\n".join(lines))
    assert (code, found(file)) == (1, ["SUR004"])
    assert "unused_ignores" not in file


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("# rlproof: ignore[KLD002]", "is unused"),
        ("# rlproof: ignore[optimistic-clp]", "did you mean optimistic-clip?"),
        ("# rlproof: ignore[SUR]", "no fault is called 'SUR'"),
        ("# rlproof: ignore", "names no fault"),
        ("# rlproof: ignore[]", "names no fault"),
    ],
)
def test_a_comment_that_ignores_nothing_is_a_note(tmp_path, comment, message):
    code, file = checked(tmp_path, with_comment(comment))
    assert (code, found(file)) == (1, ["SUR004"])
    [note] = file["unused_ignores"]
    assert message in note["message"]
    assert note["line"] == LINE + 1


def test_a_comment_on_its_own_line_is_told_where_to_go(tmp_path):
    lines = with_comment("").split("\n")
    lines.insert(LINE, "    # rlproof: ignore[SUR004]")
    code, file = checked(tmp_path, "\n".join(lines))
    [note] = file["unused_ignores"]
    assert code == 1
    assert "line of its own" in note["message"]


def test_codes_that_are_not_selected_and_faults_that_were_not_looked_for_are_not_unused(tmp_path):
    text = with_comment("# rlproof: ignore[KLD002]")
    assert "unused_ignores" not in checked(tmp_path, text, "--select", "SUR")[1]
    assert "unused_ignores" not in checked(tmp_path, text, "--no-run")[1]


def test_text_reports_count_ignored_findings_and_show_idle_comments(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(with_comment("# rlproof: ignore[SUR004,KLD002]"), "utf-8")
    for style in ("full", "concise", "github"):
        text = CliRunner().invoke(main, ["check", str(path), "--format", style]).stdout
        assert "1 finding ignored by comments" in text
        assert f"script.py:{LINE + 1}: ignore[KLD002] is unused" in text
    text = CliRunner().invoke(main, ["check", str(path), "--format", "html"]).stdout
    assert "ignore[KLD002] is unused" in text
    text = CliRunner().invoke(main, ["check", str(path), "--format", "sarif"]).stdout
    results = json.loads(text)["runs"][0]["results"]
    assert [r.get("suppressions") for r in results if r["ruleId"] == "SUR004"] == [
        [{"kind": "inSource"}]
    ]


def test_in_a_notebook_a_comment_counts_in_its_cell(tmp_path):
    cell = {"cell_type": "code", "source": with_comment("# rlproof: ignore[SUR004,KLD002]")}
    first = {"cell_type": "code", "source": "import math\n%time\n"}
    book = {"cells": [first, cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    code, file = checked(tmp_path, json.dumps(book), name="book.ipynb")
    assert (code, found(file, "ignored")) == (0, ["SUR004"])
    [note] = file["unused_ignores"]
    assert (note["cell"], note["line"]) == (2, LINE + 1)


def test_the_defence_still_objects(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(with_comment("# rlproof: ignore[SUR004]"), "utf-8")
    result = CliRunner().invoke(main, ["defend", str(path), "--format", "json"])
    assert "SUR004" in {o["code"] for o in json.loads(result.stdout)["objections"]}


def test_a_repair_leaves_ignored_findings_alone(tmp_path):
    text = with_comment("# rlproof: ignore[SUR004]")
    code, file = checked(tmp_path, text, "--fix")
    assert code == 0
    assert "repair" not in file
    assert (tmp_path / "script.py").read_text("utf-8") == text
