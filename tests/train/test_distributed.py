"""Two processes on CPU (gloo): the gradients of one, and a run that is resumed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from tests.support import tiny_policy

from rlproof.train import checkpoint

ROOT = Path(__file__).parents[2]


def launched(*args: str, cwd: Path = ROOT) -> str:
    """What `args` print, run as two processes."""
    found = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2",
         *args],
        cwd=cwd, capture_output=True, text=True, timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1",
             "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.mark.slow
def test_the_gradients_and_metrics_are_those_of_one_process():
    said = json.loads(launched("-m", "tests.support.two_processes").splitlines()[-1])
    assert said["processes"] == 2
    for name, (gradient, metric) in said["results"].items():
        assert gradient < 1e-6, name
        assert metric < 1e-6, name


@pytest.mark.slow
def test_a_run_of_two_processes_resumes_to_the_bit(tmp_path):
    tiny_policy.tokenizer().save_pretrained(tmp_path / "tokenizer")
    (tmp_path / "config.json").write_text(json.dumps(tiny_policy.llama()))
    (tmp_path / "prompts.jsonl").write_text("\n".join(map(json.dumps, tiny_policy.PROMPTS)))
    (tmp_path / "run.toml").write_text(
        '[run]\nfolder = "out"\nsteps = 4\n'
        '[model]\nconfig = "config.json"\ntokenizer = "tokenizer"\n[data]\npath = "prompts.jsonl"\n'
        '[rewards]\nfunctions = ["tests.support.tiny_policy:share_of_a"]\n'
        '[objective]\nrecipe = "grpo"\n[sampling]\nmax_tokens = 4\n'
        "[batch]\nprompts = 4\ngroup = 4\nminibatches = 2\nmicro = 2\n[optimizer]\nlr = 0.01\n"
        "[record]\nevery = 1\ncheck_first_step = true\n"
    )
    train = ("-m", "rlproof", "train", str(tmp_path / "run.toml"))
    for args in ((), ("--set", "run.folder=cut", "--set", "run.steps=2")):
        launched(*train, *args, cwd=tmp_path)
    launched(*train, "--set", "run.folder=cut", "--resume", cwd=tmp_path)
    whole, cut = (checkpoint.saved(tmp_path / name)[-1] for name in ("out", "cut"))
    assert whole.name == cut.name == "step-00000004"
    for name in ("weights.safetensors", "optimizer.safetensors", "rank-1.json"):
        assert (whole / name).read_bytes() == (cut / name).read_bytes()
