"""A page can't show what a command does not print."""

import re
from pathlib import Path

import pytest
from repairs import REPAIRS
from rlproof_docs import commands
from rlproof_docs.commands import UnexpectedError

ROOT = Path(__file__).parents[2]
PAGES = [
    page
    for page in sorted((ROOT / "docs").rglob("*.md"))
    if "{run}" in page.read_text("utf-8") and "_generated" not in page.parts
]


def test_a_command_is_held_to_its_exit_code(tmp_path):
    assert commands.run("echo yes; exit 3", tmp_path, 3) == "yes\n"
    with pytest.raises(UnexpectedError, match="exits with 3"):
        commands.run("exit 3", tmp_path)


def test_chosen_paragraphs_are_shown_and_cuts_marked():
    assert commands.only("a 1\n\nb 2\n\nc 3\n", ["^b"]) == "⋮\n\nb 2\n\n⋮\n"
    assert commands.only("a 1\n\nb 2\n", ["^a", "2$"]) == "a 1\n\nb 2\n"
    with pytest.raises(UnexpectedError, match="nothing"):
        commands.only("a 1\n\nb 2\n", ["^a", "^c"])


def test_prose_is_held_to_the_output():
    commands.expect("one\ntwo", "^two$")
    with pytest.raises(UnexpectedError, match="counts on"):
        commands.expect("one", "two")


def test_an_edit_needs_exactly_one_place(tmp_path):
    file = tmp_path / "x.py"
    file.write_text("a\nb\nb\n")
    assert commands.edit(file, "a\n", "c\n") == "@@ -1,2 +1,2 @@\n-a\n+c\n b\n"
    assert file.read_text() == "c\nb\nb\n"
    for missing in ("d", "b"):
        with pytest.raises(UnexpectedError):
            commands.edit(file, missing, "e")


def test_all_repairs_together_give_the_repaired_trainer(tmp_path):
    commands.prepare(tmp_path)
    for old, new in REPAIRS.values():
        commands.edit(tmp_path / "broken_trainer.py", old, new)
    repaired = (ROOT / "examples" / "repaired_trainer.py").read_text("utf-8")
    assert (tmp_path / "broken_trainer.py").read_text("utf-8") == repaired


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_output_is_pasted(page):
    """A `$ command` in a page by hand would be one that nobody runs."""
    text = page.read_text("utf-8")
    assert not re.search(r"^\$ (rlproof|python)", text, re.MULTILINE)
