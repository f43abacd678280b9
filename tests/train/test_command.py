"""`rlproof train run.toml`: what it prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.support import tiny_policy

from rlproof.cli import main

REWARD = "def share(completions, **_):\n    return [c.count('a') / 4 for c in completions]\n"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run.toml with all that it needs beside it."""
    tiny_policy.tokenizer().save_pretrained(tmp_path / "tokenizer")
    (tmp_path / "config.json").write_text(json.dumps(tiny_policy.llama()))
    lines = "\n".join(json.dumps(row) for row in tiny_policy.PROMPTS)
    (tmp_path / "prompts.jsonl").write_text(lines)
    (tmp_path / f"rewards_{tmp_path.name}.py").write_text(REWARD)
    (tmp_path / "run.toml").write_text(
        '[run]\nfolder = "out"\nsteps = 3\n'
        '[model]\nconfig = "config.json"\ntokenizer = "tokenizer"\n'
        '[data]\npath = "prompts.jsonl"\n'
        f'[rewards]\nfunctions = ["rewards_{tmp_path.name}:share"]\n'
        '[objective]\nrecipe = "grpo"\n[sampling]\nmax_tokens = 4\n'
        "[batch]\nprompts = 2\ngroup = 4\n[optimizer]\nlr = 0.01\n"
    )
    return tmp_path / "run.toml"


def call(*args: Any) -> Any:
    return CliRunner().invoke(main, ["train", *map(str, args)])


def test_a_run_from_a_file(run):
    found = call(run, "--check-first-step")
    assert found.exit_code == 0, found.output
    lines = found.output.splitlines()
    assert lines[0].startswith("grpo: 2 prompts × 4 completions a step, 3 steps, into ")
    steps = [line for line in lines if line.startswith("step ")]
    assert [line[:10] for line in steps] == ["step 0/3  ", "step 1/3  ", "step 2/3  "]
    assert "reward 0." in steps[0]
    assert "3 steps in" in found.output
    assert (run.parent / "out/model/model.safetensors").exists()


def test_resume_and_settings_of_the_command_line(run):
    assert call(run, "--set", "run.steps=2").exit_code == 0
    again = call(run)
    assert again.exit_code == 2
    assert "has a run already; go on with it (--resume)" in again.output
    found = call(run, "--resume")
    assert found.exit_code == 0
    assert "3 steps, from step 2 on" in found.output
    assert "nothing left to do" in call(run, "--resume").output
    other = call(run, "--resume", "--set", "objective.recipe=dapo")
    assert other.exit_code == 2
    assert "[objective] recipe is 'dapo', and was 'grpo'" in other.output


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--set", "optimizer.learning=1"], "no setting 'learning'"),
        (["--set", "lr=1"], "expected SECTION.KEY=VALUE"),
        (["--set", "model.config=no.json"], "can't be loaded"),
        (["--set", 'model.tokenizer="no/such/folder"'], "tokenizer"),
        (["--set", "data.path=no.jsonl"], "can't be read"),
        (["--set", 'rewards.functions=["nowhere:f"]'], "importing nowhere failed"),
        (["--set", "rewards.functions=[]"], "functions is empty"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_2(run, args, message):
    found = call(run, *args)
    assert found.exit_code == 2, found.output
    assert message in found.output
    assert len([line for line in found.output.splitlines() if line.startswith("error:")]) == 1
    assert "Traceback" not in found.output
    assert "internal" not in found.output


def test_a_reward_that_raises_is_one_line(run):
    module = next(run.parent.glob("rewards_*.py"))
    module.write_text("def share(completions, **_):\n    return [1 / 0]\n")
    found = call(run)
    assert found.exit_code == 2
    assert "reward function share raised ZeroDivisionError: division by zero at" in found.output


def test_without_a_file():
    found = call()
    assert found.exit_code == 2
