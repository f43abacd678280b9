"""The hook for pre-commit: its file is small enough to be read without a YAML library."""

import re
from pathlib import Path

from click.testing import CliRunner

from rlproof.cli import main
from rlproof.faults.page import page

ROOT = Path(__file__).parents[1]
HOOK = (ROOT / ".pre-commit-hooks.yaml").read_text("utf-8")


def test_the_entry_is_a_command_that_fails_for_a_fault_and_passes_its_twin(tmp_path):
    program, *arguments = re.search(r"^  entry: (.*)$", HOOK, re.M)[1].split()
    assert program == "rlproof"
    script = tmp_path / "train.py"
    for text, code in ((page("SUR004").planted, 1), (page("SUR004").healthy, 0)):
        script.write_text(text, "utf-8")
        assert CliRunner().invoke(main, [*arguments, str(script)]).exit_code == code


def test_the_documented_id_is_that_of_the_hook():
    assert re.search(r"^- id: rlproof$", HOOK, re.M)
    assert "- id: rlproof\n" in (ROOT / "docs/how-to/ci.md").read_text("utf-8")
