"""`rlproof defend`: options, formats, exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.defence import scripts
from tests.support.sampling import only

from rlproof.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"
BROKEN, REPAIRED = str(EXAMPLES / "broken_trainer.py"), str(EXAMPLES / "repaired_trainer.py")


def run(*arguments):
    return CliRunner().invoke(main, ["defend", *arguments])


@pytest.fixture
def script(tmp_path):
    def of(text):
        path = tmp_path / "script.py"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return of


def test_exit_codes(script):
    assert run("--only", "A3").exit_code == 0
    assert run(REPAIRED).exit_code == 0
    assert run(BROKEN).exit_code == 1
    assert run(script("x = 1\n")).exit_code == 5
    assert run("no-such-file.py").exit_code == 2
    assert run("--only", "Z1").exit_code == 2
    assert run("--only", "A3", REPAIRED).exit_code == 2
    assert run("--quiz", "99").exit_code == 2
    assert run("--quiz", "1", "--format", "json").exit_code == 2
    assert run("--objective", "nonsense", REPAIRED).exit_code == 2
    assert run(str(EXAMPLES)).exit_code == 2


def test_a_number_that_misses_is_exit_code_1(monkeypatch):
    from rlproof.defence import worker

    monkeypatch.setattr(worker, "numbers_of", lambda known: ((), "ValueError: broken"))
    monkeypatch.setattr("rlproof.defence.claims.numbers_of", lambda known: ((), "ValueError"))
    result = run("--only", "A3")
    assert result.exit_code == 1
    assert "DOES NOT HOLD" in result.stdout


def test_one_claim_is_quick():
    """Started as a user would: under 2 s of work, imports included, on a busy machine too."""
    before = os.times()
    command = [sys.executable, "-m", "rlproof", "defend", "--only", "A9"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    after = os.times()
    assert after.children_user + after.children_system < before[2] + before[3] + 2
    assert "1 claim, " in done.stdout


@pytest.mark.slow
def test_two_claims_and_a_chapter():
    assert "2 claims, " in run("--only", "A9,B4").stdout
    document = json.loads(run("--only", "D", "--format", "json").stdout)
    assert {claim["id"][0] for claim in document["claims"]} == {"D"}


@pytest.mark.parametrize("style", only(["json"], ["text", "md", "json", "html"]))
def test_a_format_is_the_same_each_time_and_can_be_written(style, tmp_path):
    first = run(BROKEN, "--format", style)
    again = tmp_path / "again"
    assert run(BROKEN, "--format", style, "-o", str(again)).exit_code == first.exit_code == 1
    assert again.read_text("utf-8") == first.stdout


def test_a_report_that_cannot_be_written_is_an_error(tmp_path):
    result = run("--only", "A3", "-o", str(tmp_path / "none" / "file"))
    assert result.exit_code == 2
    assert "can't be written" in result.stderr


def test_the_declared_recipe_is_compared(script):
    path = script(scripts.GRPO)
    text = run(path, "--objective", "gspo").stdout
    assert "The declared recipe is gspo: it differs in level" in text
    document = json.loads(run(path, "--format", "json").stdout)
    assert document["recipes"][0]["declared"] is False


def test_help_imports_nothing_heavy():
    code = "import sys; from rlproof.cli import main\ntry: main(['defend', '--help'])\n"
    code += "except SystemExit: pass\nprint([m for m in sys.modules if m.startswith('rlproof.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "rlproof.lab" not in done.stdout
    assert "rlproof.defence" not in done.stdout
