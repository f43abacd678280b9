"""examples/arithmetic: what is held out, what is rewarded, and the files, shrunk, as written."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.modules import module_at

EXAMPLE = Path(__file__).parents[2] / "examples/arithmetic"


@pytest.fixture(scope="module")
def task() -> Any:
    return module_at(EXAMPLE / "task.py")


def test_every_sum_is_either_trained_or_held_out(task):
    trained, held_out = task.sums()
    assert len(set(trained)) == len(trained)
    assert len(trained) + len(held_out) == 100 * 100
    assert {a + b for a, b in map(_numbers, trained + held_out)} == set(range(199))
    assert all(int(answer) == sum(_numbers((prompt, answer))) for prompt, answer in held_out)


def test_no_held_out_sum_is_trained_in_either_order(task):
    trained, held_out = ({frozenset(_numbers(one)) for one in some} for some in task.sums())
    assert len(held_out) == task.HELD_OUT
    assert not trained & held_out


def test_the_split_is_always_the_same(task):
    assert task.sums() == task.sums()


def test_only_the_sum_and_nothing_else_is_right(task):
    texts = ["7", "07", "7 ", "8", ""]
    assert task.exact(texts, ["7"] * 5) == [1.0, 0.0, 0.0, 0.0, 0.0]


def test_the_run_file_is_valid_and_judges_its_first_step():
    from rlproof.train.config import load

    config = load(EXAMPLE / "run.toml")
    assert config.record.check_first_step
    assert config.checkpoint.export
    assert config.checkpoint.keep >= config.run.steps / config.checkpoint.every


def _numbers(one: tuple[str, str]) -> tuple[int, int]:
    a, b = one[0].rstrip("=").split("+")
    return int(a), int(b)


@pytest.mark.slow
def test_the_commands_of_the_page_in_small(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    for name in ("task.py", "warm_up.py", "evaluate.py", "run.toml"):
        shutil.copy(EXAMPLE / name, tmp_path)
    _python(tmp_path, "warm_up.py", "--steps", "4")
    smaller = ["run.steps=3", "batch.prompts=4", "checkpoint.every=2", "record.every=1"]
    settings = [part for one in smaller for part in ("--set", one)]
    said = _python(tmp_path, "-m", "rlproof", "train", "run.toml", *settings)
    assert "3 steps in" in said
    table = _python(tmp_path, "evaluate.py", "--svg", "curve.svg").splitlines()
    assert [line.split()[0] for line in table] == ["step", "0", "2", "3"]
    assert (tmp_path / "curve.svg").read_text().startswith("<svg")
    lines = (tmp_path / "out/metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [0, 1, 2]
    for log in ("metrics.jsonl", "steps.rlproof.jsonl"):  # exit code 1 is an error or a warning
        _python(tmp_path, "-m", "rlproof", "inspect", f"out/{log}")


def _python(folder: Path, *command: str) -> str:
    """What a command prints; it has to succeed, without network."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
