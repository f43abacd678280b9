"""Two processes on CPU (gloo): the gradients of one, and a run that is resumed."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from tests.support.launching import DDP, LAUNCH, TORCHRUN, launched, prepared, tried

from rlproof.errors import ConfigError
from rlproof.train import checkpoint
from rlproof.train.distributed import alone, ranks


@pytest.mark.slow
def test_the_gradients_and_metrics_are_those_of_one_process():
    said = json.loads(launched(*TORCHRUN, "-m", "tests.support.two_processes").splitlines()[-1])
    assert said["processes"] == 2
    assert said["share"] == 1
    for name, (gradient, metric) in said["results"].items():
        assert gradient < 1e-6, name
        assert metric < 1e-6, name
    for name, gap in said["steps"].items():
        assert gap < 1e-6, name


@pytest.mark.slow
def test_a_run_of_two_processes_resumes_to_the_bit(tmp_path):
    train = (*TORCHRUN, "-m", "rlproof", "train", str(prepared(tmp_path)))
    for args in ((), ("--set", "run.folder=cut", "--set", "run.steps=2")):
        launched(*train, *args, cwd=tmp_path)
    launched(*train, "--set", "run.folder=cut", "--resume", cwd=tmp_path)
    whole, cut = (checkpoint.saved(tmp_path / name)[-1] for name in ("out", "cut"))
    assert whole.name == cut.name == "step-00000004"
    for name in ("weights.safetensors", "optimizer.safetensors", "rank-1.json"):
        assert (whole / name).read_bytes() == (cut / name).read_bytes()


@pytest.mark.slow
def test_the_command_of_the_page_starts_two_processes_that_speak_once(tmp_path):
    run = ("-m", "rlproof", "train", str(prepared(tmp_path)), "--set", "run.steps=1")
    said = launched(*DDP, *run, cwd=tmp_path)
    assert said.count("step 0/1") == said.count("model: ") == said.count("grpo: ") == 1
    assert (checkpoint.saved(tmp_path / "out")[-1] / "rank-1.json").exists()


@pytest.mark.slow
def test_a_launch_on_cpu_that_starts_one_process_says_so(tmp_path):
    """accelerate 1.15 starts one process with --cpu, and exports MASTER_ADDR for several."""
    run = ("-m", "rlproof", "train", str(prepared(tmp_path)), "--set", "run.steps=1")
    found = tried(*LAUNCH, "--cpu", "--num_processes", "2", *run, cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    assert "note: this is one process" in found.stdout
    assert not (checkpoint.saved(tmp_path / "out")[-1] / "rank-1.json").exists()


def test_one_process_that_was_asked_for_is_no_surprise(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")  # as clusters export it
    monkeypatch.delenv("ACCELERATE_USE_CPU", raising=False)
    assert alone() is None
    monkeypatch.setenv("ACCELERATE_USE_CPU", "True")
    assert "--multi_gpu --num_processes N" in (alone() or "")


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("ACCELERATE_USE_DEEPSPEED", "DeepSpeed"),
        ("ACCELERATE_USE_MEGATRON_LM", "Megatron-LM"),
        ("ACCELERATE_USE_PARALLELISM_CONFIG", "a parallelism of several dimensions"),
    ],
)
def test_what_is_not_known_is_refused(monkeypatch, name, what):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv(name, "true")
    with pytest.raises(ConfigError, match=f"launched with {what}; expected DDP, or FSDP2"):
        ranks()
