"""verl itself trains a tiny model on CPU, with and without recording.

Runs where verl is installed: `pip install verl==0.9.1 orjson psutil pyzmq uvicorn fastapi
cachetools` beside rlproof. Its worker,
FSDP engine, `ppo_loss` and optimizer are verl's own; what needs an accelerator is a platform of
`on_cpu/`, by verl's registry of platforms. No sampler: completions are drawn evenly.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from rlproof.watch.command import inspect_path
from rlproof.watch.schema import decode

HERE = Path(__file__).parent / "on_cpu"
pytestmark = [
    pytest.mark.conformance,
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("verl") is None, reason="verl is not installed"),
]


def train(folder, mode, *fault, modules=("platform_cpu", "rlproof.integrations.verl")):
    """The digest of the weights after three batches, each used for four updates."""
    folder.mkdir()
    paths = os.pathsep.join([str(HERE), *sys.path])
    environment = {
        **os.environ, "VERL_USE_EXTERNAL_MODULES": ",".join(modules), "PYTHONPATH": paths,
        "RLPROOF_RECORD": str(folder / "steps-{rank}.jsonl"), "RLPROOF_EVERY": "1",
        "RLPROOF_UPDATES": "4",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, str(HERE / "actor.py"), str(folder), mode, *fault],
        env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return next(line for line in done.stdout.splitlines() if line.startswith("weights"))


def found(folder):
    return inspect_path(str(folder / "steps-0.jsonl"), ())


def test_weights_are_the_same_bits_and_the_loss_is_named(tmp_path):
    watched = train(tmp_path / "a", "rlproof_vanilla")
    plain = train(tmp_path / "b", "vanilla", modules=("platform_cpu",))
    assert watched == plain
    assert not (tmp_path / "b" / "steps-0.jsonl").exists()
    lines = (tmp_path / "a" / "steps-0.jsonl").read_bytes().splitlines()
    places = [(r.step, r.update, r.micro_batch) for r in map(decode, lines)]
    assert places == [(s, u, m) for s in range(3) for u in range(4) for m in range(2)]
    shown = found(tmp_path / "a")
    assert shown.findings == ()
    assert "grpo" in shown.said[0]
    logged = inspect_path(str(tmp_path / "a" / "metrics.jsonl"), ())
    assert (logged.framework, logged.rows, logged.findings) == ("verl", 3, ())


def test_faults_are_found(tmp_path):
    train(tmp_path / "old", "rlproof", "noisy-old")
    assert [f.rule.code for f in found(tmp_path / "old").findings] == ["STP005"]
    modules = ("platform_cpu", "own_loss", "rlproof.integrations.verl")
    train(tmp_path / "sign", "rlproof_mine", modules=modules)
    (finding,) = found(tmp_path / "sign").findings
    assert finding.rule.code == "STP001"
    assert "SUR005" in finding.faults
