"""FSDP2 in two processes on CPU (gloo), started by `accelerate launch`, against one and DDP."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")
fsdp = pytest.importorskip("torch.distributed.fsdp")
if not hasattr(fsdp, "fully_shard"):
    pytest.skip("this torch has no fully_shard", allow_module_level=True)

from tests.support.launching import DDP, FSDP, FSDP2, launched, prepared, tried  # noqa: E402

from rlproof.errors import ConfigError  # noqa: E402
from rlproof.train import checkpoint  # noqa: E402
from rlproof.train.distributed import ranks  # noqa: E402

FILES = ("weights.safetensors", "optimizer.safetensors", "rank-0.json", "rank-1.json")


@pytest.mark.slow
def test_gradients_and_steps_are_those_of_one_process():
    """Every objective; two steps with a clip, tied and odd matrices, adapters, recomputation."""
    said = json.loads(launched(*FSDP2, "-m", "tests.support.two_processes").splitlines()[-1])
    assert said["processes"] == 2
    assert said["share"] == 0.5  # every matrix and vector of that model has an even first size
    for name, (gradient, metric) in said["results"].items():
        assert gradient < 1e-6, name
        assert metric < 1e-6, name
    for name, gap in said["steps"].items():
        assert gap < 1e-6, name


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A folder with the run `out`."""
    folder: Path = tmp_path_factory.mktemp("sharded")
    launched(*FSDP2, "-m", "rlproof", "train", str(prepared(folder)), cwd=folder)
    return folder


@pytest.mark.slow
def test_a_run_is_that_of_ddp(run):
    """Same prompts, random numbers and weights, so the same completions; float32 sums differ."""
    launched(*DDP, "-m", "rlproof", "train", "run.toml", "--set", "run.folder=ddp", cwd=run)
    logs = [(run / name / "metrics.jsonl").read_text().splitlines() for name in ("out", "ddp")]
    assert len(logs[0]) == len(logs[1]) == 4
    for sharded, plain in zip(*(map(json.loads, log) for log in logs), strict=True):
        assert sharded["kl"] > 0
        for name in ("reward", "completion_length", "kl", "loss", "entropy", "grad_norm"):
            assert sharded[name] == pytest.approx(plain[name], rel=1e-3, abs=1e-5), name
        assert sharded["sampler_gap"] < 1e-5  # the copy that samples has the weights that learn


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_bit(run):
    train = (*FSDP2, "-m", "rlproof", "train", "run.toml", "--set", "run.folder=cut")
    assert tried(*train, cwd=run, DIES="1:2").returncode != 0
    assert checkpoint.saved(run / "cut")[-1].name == "step-00000002"
    launched(*train, "--resume", cwd=run)
    whole, cut = (checkpoint.saved(run / name)[-1] for name in ("out", "cut"))
    assert whole.name == cut.name == "step-00000004"
    for name in FILES:
        assert (whole / name).read_bytes() == (cut / name).read_bytes()


@pytest.mark.slow
def test_what_is_exported_are_the_weights_of_the_checkpoint(run):
    last = checkpoint.saved(run / "out")[-1]
    weights = checkpoint.tensors_from(last / "weights.safetensors")
    begun = transformers.AutoModelForCausalLM.from_pretrained(run / "start").state_dict()
    assert any(not torch.equal(weights[name], begun[name]) for name in weights)
    for folder in (run / "out/model", last / "model"):
        found = transformers.AutoModelForCausalLM.from_pretrained(folder).state_dict()
        assert set(weights) <= set(found)
        assert all(torch.equal(found[name], tensor) for name, tensor in weights.items())


@pytest.mark.slow
def test_fsdp_of_version_1_is_refused_before_anything_is_written(tmp_path):
    path = prepared(tmp_path)
    found = tried(*FSDP, "--fsdp_version", "1", "-m", "rlproof", "train", str(path), cwd=tmp_path)
    assert found.returncode != 0
    assert "launched with FSDP version 1, expected 2: add `--fsdp_version 2`" in found.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("FSDP_VERSION", "1", "FSDP version 1, expected 2"),
        ("FSDP_OFFLOAD_PARAMS", "true", "--fsdp_offload_params true; weights offloaded"),
        ("FSDP_ACTIVATION_CHECKPOINTING", "True", "gradient_checkpointing in place of it"),
    ],
)
def test_what_is_not_done_is_refused(monkeypatch, name, value, message):
    for key, setting in {
        "WORLD_SIZE": "2",
        "ACCELERATE_USE_FSDP": "true",
        "FSDP_VERSION": "2",
    }.items():
        monkeypatch.setenv(key, setting)
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=message):
        ranks()
