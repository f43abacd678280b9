"""Checkpoints: whole or not at all, and a run goes on from them bit by bit alike."""

from __future__ import annotations

import json
import os
import random
import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.support import tiny_policy  # noqa: E402

from rlproof.errors import CheckpointError, ConfigError, TrainError  # noqa: E402
from rlproof.train import TrainConfig, Trainer, atomic, checkpoint  # noqa: E402


def drawn(completions: list[str], **_: Any) -> list[float]:
    """Rewards that depend on every random generator there is."""
    import numpy as np

    def noise() -> float:
        return random.random() + float(np.random.rand()) + float(torch.rand(()))

    return [text.count("a") + noise() for text in completions]


def config(folder: Path, **sections: Any) -> TrainConfig:
    table: dict[str, Any] = {
        "run": {"folder": str(folder), "steps": 4}, "sampling": {"max_tokens": 3},
        "batch": {"prompts": 2, "group": 4, "minibatches": 2},
        "optimizer": {"lr": 1e-2, "warmup": 2}, "objective": {"recipe": "grpo"},
        "checkpoint": {"every": 1}, "record": {"every": 1},
    }  # fmt: skip
    for name, values in sections.items():
        table[name] = {**table.get(name, {}), **values}
    return TrainConfig.of(table)


def trainer(folder: Path, resume: bool = False, **sections: Any) -> Trainer:
    return Trainer(
        config(folder, **sections), rewards=[drawn], prompts=tiny_policy.PROMPTS, resume=resume,
        model=tiny_policy.model(), tokenizer=tiny_policy.tokenizer(),
    )  # fmt: skip


def weights(one: Trainer) -> dict[str, Any]:
    return {name: p.detach().clone() for name, p in one.policy.trained().items()}


def same(first: dict[str, Any], second: dict[str, Any]) -> bool:
    return set(first) == set(second) and all(torch.equal(first[n], second[n]) for n in first)


def logged(folder: Path) -> list[dict[str, float]]:
    """Metrics without what a clock says."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    clocks = ("seconds", "tokens_per")
    return [{k: v for k, v in row.items() if not k.startswith(clocks)} for row in rows]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> tuple[dict[str, Any], Path]:
    folder = tmp_path_factory.mktemp("whole") / "run"
    one = trainer(folder)
    one.train()
    return weights(one), folder


def test_a_resumed_run_is_the_same_to_the_bit(whole, tmp_path):
    folder = tmp_path / "run"
    trainer(folder, run={"steps": 2}).train()
    random.seed(99)  # whatever happened in between
    torch.manual_seed(99)
    torch.rand(3)
    again = trainer(folder, resume=True)
    assert again.step == 2
    again.train()
    assert same(weights(again), whole[0])
    assert logged(folder) == logged(whole[1])
    records = [(f / "steps.rlproof.jsonl").read_bytes() for f in (folder, whole[1])]
    assert records[0] == records[1]


def test_sgd_with_momentum_and_a_sampler_of_its_own_seed_resume_alike(tmp_path):
    how = {"optimizer": {"name": "sgd", "lr": 0.5, "schedule": "cosine"}, "sampling": {"seed": 9}}
    whole = trainer(tmp_path / "whole", **how)
    whole.train()

    def dies(step: int, _values: dict[str, float]) -> None:
        if step == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trainer(tmp_path / "cut", **how).train(dies)
    again = trainer(tmp_path / "cut", resume=True, **how)
    assert again.step == 2
    again.train()
    assert same(weights(again), weights(whole))


def test_a_full_disk_at_the_end_says_so(tmp_path, monkeypatch):
    one = trainer(tmp_path / "run", run={"steps": 1})

    def full(_folder: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(one.policy.model, "save_pretrained", full)
    with pytest.raises(CheckpointError, match=r"model could not be written .No space left"):
        one.train()
    assert not (tmp_path / "run/model").exists()
    assert [p.name for p in checkpoint.saved(tmp_path / "run")] == ["step-00000001"]
    again = trainer(tmp_path / "run", run={"steps": 1}, resume=True)
    again.train()  # nothing is left to do but to write the model
    assert (tmp_path / "run/model/model.safetensors").exists()


def test_what_was_logged_after_the_checkpoint_is_cut_off(whole, tmp_path):
    """A run that dies in step 3, whose last checkpoint was written after step 1."""
    folder = tmp_path / "run"

    def dies(step: int, _values: dict[str, float]) -> None:
        if step == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trainer(folder, checkpoint={"every": 2}).train(dies)
    assert len(logged(folder)) == 3
    again = trainer(folder, resume=True, checkpoint={"every": 2})
    assert len(logged(folder)) == 2
    again.train()
    assert same(weights(again), whole[0])
    assert logged(folder) == logged(whole[1])


def test_without_the_random_state_the_next_step_would_differ(whole, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    trainer(folder, run={"steps": 2}).train()
    random.seed(99)
    monkeypatch.setattr(random, "setstate", lambda _state: None)
    again = trainer(folder, resume=True)
    again.train()
    assert not same(weights(again), whole[0])


def test_the_last_k_are_kept_and_the_model_loads_in_transformers(whole):
    import transformers

    folder = whole[1]
    assert [p.name for p in checkpoint.saved(folder)] == ["step-00000003", "step-00000004"]
    loaded = transformers.AutoModelForCausalLM.from_pretrained(folder / "model")
    assert same(dict(loaded.named_parameters()), whole[0])


class Killed(BaseException):
    """Stands for a kill: no handler of errors may clean up after it."""


CALLS = ("fsync", "rename", "mkdir")


@pytest.mark.parametrize("call", CALLS)
def test_a_kill_at_any_call_leaves_whole_checkpoints(call, whole, tmp_path, monkeypatch):
    """Dies at the n-th call to the system while step 2 is written, for every n."""
    source = whole[1]
    names = [p.name for p in checkpoint.saved(source)]
    one = trainer(tmp_path / "run", checkpoint={"every": 0})
    real = getattr(os, call)
    for n in range(40):
        left = [n]

        def dying(*args: Any, left: list[int] = left, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            return real(*args, **kwargs)

        for old in checkpoint.saved(one.folder):
            atomic.remove_folder(old)
        one.step = 1
        one.save()
        one.step = 2
        with monkeypatch.context() as patch:
            patch.setattr(os, call, dying)
            try:
                one.save()
                survived = True
            except Killed:
                survived = False
        atomic.tidy(checkpoint.folder_of(one.folder))
        found = checkpoint.saved(one.folder)
        assert found[0].name == "step-00000001"
        for place in found:
            checkpoint.read_state(place)
            checkpoint.restore(place, one.policy.trained(), one.updater.optimizer)
        if survived:
            break
    assert survived
    assert n > 0
    assert len(names) == 2


def test_a_full_disk_leaves_the_older_checkpoint(tmp_path, monkeypatch):
    from safetensors import torch as safetensors

    one = trainer(tmp_path / "run", checkpoint={"every": 0})
    one.step = 1
    one.save()
    real = safetensors.save_file

    def half(tensors: Any, name: str, *args: Any, **kwargs: Any) -> None:
        real(tensors, name, *args, **kwargs)
        if "optimizer" in name:
            with open(name, "r+b") as file:
                file.truncate(10)
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(safetensors, "save_file", half)
    one.step = 2
    message = "step-00000002 could not be written .No space left on device.; step-00000001 is as"
    with pytest.raises(CheckpointError, match=message):
        one.save()
    places = list(checkpoint.folder_of(one.folder).iterdir())
    assert [p.name for p in places] == ["step-00000001"]
    checkpoint.restore(places[0], one.policy.trained(), one.updater.optimizer)


def test_a_file_size_limit_is_met_in_the_middle_of_a_file(tmp_path):
    """The system itself refuses to write on: RLIMIT_FSIZE, in a child."""
    pytest.importorskip("resource")
    one = trainer(tmp_path / "run", checkpoint={"every": 0})
    one.step = 1
    one.save()
    one.step = 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # this process has threads; the child only writes files
        pid = os.fork()
    if not pid:
        import resource
        import signal

        code = 3
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
            one.save()
        except CheckpointError as error:
            code = 0 if "step-00000001 is as it was" in str(error) else 4
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert [p.name for p in checkpoint.folder_of(one.folder).iterdir()] == ["step-00000001"]


def test_a_damaged_checkpoint_is_named(tmp_path):
    folder = tmp_path / "run"
    trainer(folder, run={"steps": 1}).train()
    (place,) = checkpoint.saved(folder)
    whole_file = (place / "weights.safetensors").read_bytes()
    (place / "weights.safetensors").write_bytes(whole_file[: len(whole_file) // 2])
    with pytest.raises(CheckpointError, match=r"weights.safetensors: can't be read"):
        trainer(folder, resume=True)


def test_a_folder_with_a_run_is_not_overwritten(whole):
    with pytest.raises(ConfigError, match="has a run already; go on with it"):
        trainer(whole[1])


def test_nothing_to_resume(tmp_path):
    with pytest.raises(ConfigError, match="has no run to resume"):
        trainer(tmp_path / "run", resume=True)


def test_other_settings_are_refused(whole):
    with pytest.raises(TrainError, match=r"\[optimizer\] lr is 0.5, and was 0.01 when"):
        trainer(whole[1], resume=True, optimizer={"lr": 0.5})


def test_another_model_is_refused(whole):
    with pytest.raises(CheckpointError, match="of another model"):
        Trainer(
            config(whole[1]), rewards=[drawn], prompts=tiny_policy.PROMPTS, resume=True,
            model=tiny_policy.model(tiny_policy.llama(width=32)), tokenizer=tiny_policy.tokenizer(),
        )  # fmt: skip
