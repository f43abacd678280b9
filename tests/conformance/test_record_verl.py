"""verl 0.9.1's policy losses, recorded: the same bits, and named from the record.

Shapes: B rows, T slots.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from rlproof.watch.command import inspect_path
from rlproof.watch.schema import StepRecord, decode
from tests.conformance.batches import Batch, random_batch
from tests.conformance.test_verl import case_batch
from tests.conformance.verl import (
    CORE,
    NAME,
    VERSION,
    Case,
    actor,
    bypass,
    code,
    configs,
    point,
    rollout_module,
)
from tests.conformance.wheels import extract, wheel

pytestmark = pytest.mark.conformance
MODES = ("vanilla", "gspo", "sapo", "gpg", "geo_mean", "dro", "cispo", "bypass_mode")
OWN = "seq-mean-token-sum-norm"


@pytest.fixture(autouse=True)
def _record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RLPROOF_RECORD", str(tmp_path / "steps.jsonl"))
    monkeypatch.setenv("RLPROOF_EVERY", "1")
    monkeypatch.delenv("RLPROOF_UPDATES", raising=False)


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """verl.trainer.ppo.core_algos, as far as policy losses go, with its registry."""
    names = [
        "POLICY_LOSS_REGISTRY", "register_policy_loss", "get_policy_loss_fn", "agg_loss",
        "ADV_ESTIMATOR_REGISTRY", "register_adv_est", "AdvantageEstimator",
    ]  # fmt: skip
    losses = [f"compute_policy_loss_{mode}" for mode in (*MODES, "reinforce")]
    found = extract(
        wheel(NAME, VERSION), CORE, [*names, *losses],
        {"torch": torch, "Enum": Enum, "verl_F": code().functional,
         "ActorConfig": configs().ActorConfig,
         "AlgoConfig": type("AlgoConfig", (), {})},
        decorators=True,
    )  # fmt: skip
    parents = ("verl", "verl.trainer", "verl.trainer.ppo")
    modules = {name: ModuleType(name) for name in (*parents, f"{parents[-1]}.core_algos")}
    module = modules["verl.trainer.ppo.core_algos"]
    vars(module).update(vars(found))
    modules[parents[-1]].core_algos = module  # type: ignore[attr-defined]
    modules[rollout_module().__name__] = rollout_module()
    for name, made in modules.items():
        monkeypatch.setitem(sys.modules, name, made)
    return module


@pytest.fixture
def hooks(core: ModuleType) -> Iterator[ModuleType]:
    """rlproof.integrations.verl, as verl imports it."""
    name = "rlproof.integrations.verl"
    yield importlib.import_module(name)
    for loaded in [one for one in sys.modules if one == name or one.startswith(f"{name}.")]:
        del sys.modules[loaded]


def records_path() -> Path:
    return Path(os.environ["RLPROOF_RECORD"])


def records() -> list[StepRecord]:
    return [decode(line) for line in records_path().read_bytes().splitlines()]


def call(core: ModuleType, name: str, batch: Batch, config: Any, **more: Any) -> tuple[Any, ...]:
    """Loss, metrics and gradient, as verl's `ppo_loss` and its engine ask for them."""
    new = batch.new.detach().clone().requires_grad_()
    logps = new * 1.0  # not a leaf, as a model's are not
    old = batch.old
    adv = batch.advantages if batch.advantages.ndim == 2 else batch.advantages[:, None] + 0 * old
    loss, metrics = core.get_policy_loss_fn(name)(
        old_log_prob=old, log_prob=logps, advantages=adv, response_mask=batch.mask.bool(),
        loss_agg_mode=config.loss_agg_mode, config=config, **more,
    )  # fmt: skip
    value = loss.detach().clone()
    loss -= 0.0 * loss.detach()  # verl changes the loss in place
    (loss / 2).backward()
    return value, metrics, new.grad


def settings(mode: str, counts: dict[str, Any] | None = None, **config: Any) -> Any:
    policy = bypass(loss_type="ppo_clip") if mode == "bypass_mode" else {"loss_mode": mode}
    made = actor(config, {**policy, "dro_beta": 0.3})
    made.global_batch_info.update(counts or {})
    return made


def batch_of(seed: int) -> Batch:
    return case_batch(Case("", point()), seed)


@pytest.mark.parametrize("mode", MODES)
def test_a_recorded_loss_is_the_same_bits(core: Any, hooks: Any, mode: str) -> None:
    counts = {"dp_size": 2, "batch_num_tokens": 40, "global_batch_size": 10}
    for seed in range(4):
        plain = call(core, mode, batch_of(seed), settings(mode, counts))
        found = call(core, f"rlproof_{mode}", batch_of(seed), settings(mode, counts))
        assert torch.equal(plain[0], found[0])
        assert torch.equal(plain[2], found[2])
        assert plain[1] == found[1]
    assert len(records()) == 4


def test_every_loss_of_the_registry_has_one_that_records(core: Any, hooks: Any) -> None:
    names = [n for n in core.POLICY_LOSS_REGISTRY if not n.startswith("rlproof")]
    assert {"vanilla", "gspo"} < set(names)
    added = {n for n in set(core.POLICY_LOSS_REGISTRY) - set(names) if ":" not in n}
    assert {f"rlproof_{n}" for n in names} | {"rlproof"} == added


@pytest.mark.parametrize("mode", [
    "token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean", OWN,
])  # fmt: skip
def test_the_scale_is_the_part_of_the_update(core: Any, hooks: Any, mode: str) -> None:
    """By hand: real tokens, or rows, of the micro-batch over those of two ranks, times two."""
    batch = batch_of(0)
    counts = {"dp_size": 2, "batch_num_tokens": 40, "global_batch_size": 10}
    tokens, rows = float(batch.mask.sum()), float((batch.mask.sum(1) > 0).sum())
    expected = {"token-mean": tokens / 40 * 2, "token-sum": 2.0}.get(mode, rows / 10 * 2)
    value, _, grad = call(core, "rlproof", batch, settings("vanilla", counts, loss_agg_mode=mode))
    alone = call(core, "vanilla", batch, settings("vanilla", loss_agg_mode=mode))
    (record,) = records()
    assert record.scale == pytest.approx(expected, rel=1e-12)
    assert record.loss * record.scale == pytest.approx(float(value))
    assert record.loss == pytest.approx(float(alone[0]), rel=1e-12)
    slopes = torch.tensor(record.arrays["grad"].array())
    assert torch.allclose(slopes * record.scale / 2, grad, rtol=1e-12, atol=0)


def test_micro_batches_are_counted_by_their_rows(
    core: Any, hooks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20 rows on 2 ranks are two calls of 5 rows an update; two updates use a batch."""
    monkeypatch.setenv("RLPROOF_UPDATES", "2")
    hooks.record_loss("vanilla")
    counts = {"dp_size": 2, "batch_num_tokens": 80, "global_batch_size": 20}
    for seed in range(6):
        call(core, "rlproof_vanilla", batch_of(seed), settings("vanilla", counts))
    assert [(r.step, r.update, r.micro_batch) for r in records()] == [
        (0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (1, 0, 0), (1, 0, 1),
    ]  # fmt: skip
    assert records()[0].facts == {"clip_low": 0.2, "clip_high": 0.2, "updates": 2}


def test_a_forward_pass_is_no_update(core: Any, hooks: Any) -> None:
    with torch.no_grad():
        batch = batch_of(0)
        core.get_policy_loss_fn("rlproof")(
            batch.old, batch.new, batch.old * 0 + 1, batch.mask, config=settings("vanilla")
        )
    call(core, "rlproof", batch_of(1), settings("vanilla"))
    assert [r.step for r in records()] == [0]


@pytest.mark.parametrize(("mode", "named"), [("vanilla", "grpo"), ("gspo", "sequence-mean ratio")])
def test_losses_are_named(core: Any, hooks: Any, mode: str, named: str) -> None:
    counts = {"dp_size": 1, "batch_num_tokens": 40, "global_batch_size": 10}
    for seed in range(4):
        call(core, f"rlproof_{mode}", batch_of(seed), settings(mode, counts))
    shown = inspect_path(str(records_path()), ())
    assert shown.findings == ()
    assert named in shown.said[0]


def test_a_loss_of_ones_own_without_its_minus_is_found(core: Any, hooks: Any) -> None:
    @core.register_policy_loss("mine")
    def mine(**given: Any) -> Any:
        given["advantages"] = -given["advantages"]
        return core.compute_policy_loss_vanilla(**given)

    name = hooks.record_loss("mine")
    for seed in range(4):
        call(core, name, batch_of(seed), settings("vanilla", clip_ratio_c=1e9))
    shown = inspect_path(str(records_path()), ())
    assert [f.rule.code for f in shown.findings] == ["STP001"]
    assert "SUR005" in shown.findings[0].faults


def test_wrong_old_log_probs_are_found(
    core: Any, hooks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """random_batch draws old and new apart, as two ways of scoring would."""
    monkeypatch.setenv("RLPROOF_UPDATES", "1")
    name = hooks.record_loss("vanilla")
    call(core, name, random_batch(0), settings("vanilla"))
    shown = inspect_path(str(records_path()), ())
    assert "STP005" in {f.rule.code for f in shown.findings}


def test_what_can_not_be_written_warns_once_and_returns_the_loss(
    core: Any, hooks: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "folder.jsonl").mkdir()
    monkeypatch.setenv("RLPROOF_RECORD", str(tmp_path / "folder.jsonl"))
    with pytest.warns(RuntimeWarning, match="rlproof.record"):
        found = call(core, "rlproof", batch_of(0), settings("vanilla"))
    assert torch.equal(found[0], call(core, "vanilla", batch_of(0), settings("vanilla"))[0])


def test_weights_for_the_sampler_are_said(core: Any, hooks: Any) -> None:
    batch = batch_of(0)
    call(core, "rlproof", batch, settings("vanilla"), rollout_is_weights=batch.mask * 0.5)
    assert "rollout_is_weights" in records()[0].problems[0]


def test_the_file_logger_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `trainer.logger=[file]` writes, by verl's own FileLogger."""

    class Orjson(SimpleNamespace):
        OPT_SERIALIZE_NUMPY = 0

        @staticmethod
        def dumps(value: Any, option: int) -> bytes:
            return json.dumps(value).encode()

    logger = extract(
        wheel(NAME, VERSION), "verl/utils/tracking.py", ["FileLogger"], {"os": os, "orjson": Orjson}
    ).FileLogger
    monkeypatch.setenv("VERL_FILE_LOGGER_PATH", str(tmp_path / "metrics.jsonl"))
    file = logger("project", "experiment")
    for step in range(3):
        file.log({"actor/pg_loss": 0.1, "actor/pg_clipfrac": 0.1, "actor/entropy": 0.5}, step)
    file.finish()
    shown = inspect_path(str(tmp_path / "metrics.jsonl"), ())
    assert (shown.framework, shown.rows) == ("verl", 3)
