"""OpenRLHF 0.11.2's PolicyLoss, recorded: the same bits, and named from the record.

Shapes: B rows, T slots.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from rlproof.integrations import openrlhf as hooks
from rlproof.integrations.openrlhf.processes import Importer
from rlproof.watch.command import inspect_path
from rlproof.watch.schema import StepRecord, decode
from tests.conformance.batches import Batch, random_batch
from tests.conformance.openrlhf import ACTOR, LOSS, NAME, ROOT, UTILS, VERSION
from tests.conformance.wheels import extract, wheel

pytestmark = pytest.mark.conformance
BY_ROW = {"token_level_loss": False}
GSPO = {"policy_loss_type": "gspo"}
GATED = {"is_correction_level": "token", "is_correction_mode": "clip"}
COUNTS = {"dp_size": 2, "batch_num_tokens": torch.tensor(40.0), "global_batch_size": 10.0}


def classes() -> tuple[Any, Any, Any]:
    """OpenRLHF's PolicyLoss as it is, one that records, and aggregate_loss."""
    utils = vars(extract(wheel(NAME, VERSION), UTILS, ["masked_mean"], {"torch": torch}))
    namespace = {"torch": torch, "nn": torch.nn, **utils}
    made = [
        extract(wheel(NAME, VERSION), LOSS, ["aggregate_loss", "PolicyLoss"], namespace)
        for _ in range(2)
    ]
    return made[0].PolicyLoss, made[1].PolicyLoss, made[1].aggregate_loss


@pytest.fixture
def path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    found = tmp_path / "steps.jsonl"
    monkeypatch.setenv("RLPROOF_RECORD", str(found))
    monkeypatch.setenv("RLPROOF_EVERY", "1")
    return found


def records(path: Path) -> list[StepRecord]:
    return [decode(line) for line in path.read_bytes().splitlines()]


def call(loss: Any, batch: Batch, **counts: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss and gradient of a micro-batch."""
    new = batch.new.detach().clone().requires_grad_()
    adv = batch.advantages[:, None]
    value = loss(
        new * 1.0, batch.old, adv, action_mask=batch.mask.float(),
        rollout_log_probs=batch.sampler, **counts,
    )[0]  # fmt: skip
    (value / 2).backward()
    assert new.grad is not None
    return value.detach(), new.grad


@pytest.mark.parametrize("options", [{}, {"dual_clip": 3.0}, GSPO, BY_ROW, GATED])
@pytest.mark.parametrize("counts", [{}, COUNTS])
def test_a_recorded_loss_is_the_same_bits(path: Path, options: Any, counts: Any) -> None:
    plain, recording, aggregate = classes()
    hooks.record_loss(recording, aggregate, hooks.Clock())
    for seed in range(4):
        batch = random_batch(seed, empty_row=False)
        expected, found = (call(c(**options), batch, **counts) for c in (plain, recording))
        assert torch.equal(expected[0], found[0])
        assert torch.equal(expected[1], found[1])
    assert len(records(path)) == 4


@pytest.mark.parametrize("by_token", [True, False])
def test_the_scale_is_the_part_of_the_update(path: Path, by_token: bool) -> None:
    """By hand: real tokens, or rows, over those of two ranks, times two."""
    plain, recording, aggregate = classes()
    hooks.record_loss(recording, aggregate, hooks.Clock())
    batch = random_batch(0, empty_row=False)
    value, grad = call(recording(token_level_loss=by_token), batch, **COUNTS)
    alone, _ = call(plain(token_level_loss=by_token), batch)
    expected = float(batch.mask.sum()) / 40 * 2 if by_token else len(batch.mask) / 10 * 2
    (record,) = records(path)
    assert record.scale == pytest.approx(expected, rel=1e-6)  # its counts are float32
    assert record.loss == pytest.approx(float(alone), rel=1e-6)
    slopes = torch.tensor(record.arrays["grad"].array())
    assert torch.allclose(slopes * record.scale / 2, grad, rtol=1e-6, atol=0)
    assert record.loss * record.scale == pytest.approx(float(value))


@pytest.mark.parametrize(("options", "named"), [({}, "grpo"), (BY_ROW, "maxrl"), (GSPO, "gspo")])
def test_losses_are_named(path: Path, options: Any, named: str) -> None:
    _, recording, aggregate = classes()
    hooks.record_loss(recording, aggregate, hooks.Clock())
    for seed in range(4):
        call(recording(**options), random_batch(seed, empty_row=False), **COUNTS)
    shown = inspect_path(str(path), ())
    assert shown.findings == ()
    assert named in shown.said[0]


def test_a_wrong_sign_is_found(path: Path) -> None:
    _, _, aggregate = classes()
    plain, _, _ = classes()

    class Mine(plain):  # type: ignore[misc]
        def forward(self, new: Any, old: Any, adv: Any, **given: Any) -> Any:
            return super().forward(new, old, -adv, **given)

    class Recorded(Mine):
        def forward(self, log_probs: Any, old_log_probs: Any, advantages: Any, **given: Any) -> Any:
            return super().forward(log_probs, old_log_probs, advantages, **given)

    hooks.record_loss(Recorded, aggregate, hooks.Clock())
    for seed in range(4):
        call(Recorded(), random_batch(seed, empty_row=False))
    shown = inspect_path(str(path), ())
    assert [f.rule.code for f in shown.findings] == ["STP001"]
    assert "SUR005" in shown.findings[0].faults


class Strategy:
    """What DeepSpeed's strategy is to a step on one processor."""

    accumulated_gradient = 2

    def __init__(self, weights: torch.Tensor) -> None:
        self.optimizer = torch.optim.SGD([weights], lr=20.0)
        self.ring_attn_group, self.calls = None, 0

    def backward(self, loss: torch.Tensor, *_: Any) -> None:
        (loss / self.accumulated_gradient).backward()

    def optimizer_step(self, *_: Any, name: str) -> None:
        self.calls += 1
        if self.calls % self.accumulated_gradient == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()

    def get_grad_norm(self, _: Any) -> float:
        return 0.0


class Table:
    """A model that is a table of log-probs."""

    def __init__(self, weights: torch.Tensor) -> None:
        self.weights = weights

    def train(self) -> None:
        pass

    def __call__(self, sequences: torch.Tensor, *_: Any, **__: Any) -> Any:
        return torch.log_softmax(self.weights, -1)[sequences], SimpleNamespace()


def trainer(policy_loss: Any, weights: torch.Tensor) -> Any:
    """OpenRLHF's own `ActorPPOTrainer.training_step`, over a table."""
    step = extract(
        wheel(NAME, VERSION), ACTOR, ["ActorPPOTrainer.training_step"],
        {"torch": torch, "fields": lambda _: (), "Experience": object, "get_loss_batch_info": None},
    ).training_step  # fmt: skip

    class ActorPPOTrainer:
        training_step = step

        def ppo_train(self, micro_batches: list[Any], info: dict[str, Any]) -> None:
            for number, experience in enumerate(micro_batches):
                self.training_step(experience, 0.0, number, info)

    made = ActorPPOTrainer()
    vars(made).update(
        actor=Table(weights), strategy=Strategy(weights), actor_loss_fn=policy_loss,
        actor_optim=None, ema_model=None, aux_loss=False,
        actor_scheduler=SimpleNamespace(get_last_lr=lambda: [1.0]),
        args=SimpleNamespace(
            actor=SimpleNamespace(entropy_coef=None),
            algo=SimpleNamespace(kl=SimpleNamespace(use_loss=False)),
            train=SimpleNamespace(dynamic_batch_enable=False),
        ),
    )  # fmt: skip
    return made, ActorPPOTrainer


def train(policy_loss: Any, clock: hooks.Clock | None) -> torch.Tensor:
    """Three batches, each two updates of two micro-batches: the weights."""
    weights = torch.zeros(6, requires_grad=True)
    made, its_class = trainer(policy_loss, weights)
    if clock is not None:
        hooks.count_updates(its_class, clock)
    source = torch.Generator().manual_seed(0)
    for _ in range(3):
        tokens = torch.randint(6, (8, 5), generator=source)
        old = torch.log_softmax(weights, -1).detach()[tokens]
        mask = torch.arange(5) < torch.randint(1, 6, (8, 1), generator=source)
        advantages = torch.randn(8, 1, generator=source).expand(8, 5) * mask
        parts = [
            SimpleNamespace(
                sequences=tokens[rows], action_mask=mask[rows].float(), attention_mask=None,
                action_log_probs=old[rows], advantages=advantages[rows],
                base_action_log_probs=None, rollout_log_probs=None, info={},
            )
            for rows in torch.arange(8).chunk(4)
        ]  # fmt: skip
        made.ppo_train(parts, {"dp_size": 1, "batch_num_tokens": 6.0, "global_batch_size": 2.0})
    return weights.detach()


def test_training_steps_are_numbered_and_weights_are_the_same_bits(path: Path) -> None:
    plain, recording, aggregate = classes()
    clock = hooks.Clock()
    hooks.record_loss(recording, aggregate, clock)
    assert torch.equal(train(plain(), None), train(recording(), clock))
    found = [(r.step, r.update, r.micro_batch) for r in records(path)]
    assert found == [(s, u, m) for s in range(3) for u in range(2) for m in range(2)]
    shown = inspect_path(str(path), ())
    assert shown.findings == ()
    assert "grpo" in shown.said[0]


def logging_module() -> SimpleNamespace:
    return extract(
        wheel(NAME, VERSION), f"{ROOT}/utils/logging_utils.py",
        ["WandbLogger", "TensorboardLogger"], {},
    )  # fmt: skip


def test_the_logger_has_the_interface_of_openrlhfs(tmp_path: Path) -> None:
    import inspect

    for theirs in vars(logging_module()).values():
        for name in ("log_train", "log_eval", "close"):
            own = inspect.signature(getattr(hooks.JsonlLogger, name))
            assert list(own.parameters) == list(inspect.signature(getattr(theirs, name)).parameters)


def test_metrics_are_read(tmp_path: Path) -> None:
    """By OpenRLHF's own `save_logs_and_checkpoints`, with a sample of text among the numbers."""
    save = extract(
        wheel(NAME, VERSION), f"{ROOT}/trainer/ppo_trainer.py",
        ["BasePPOTrainer.save_logs_and_checkpoints"], {},
    ).save_logs_and_checkpoints  # fmt: skip

    class BasePPOTrainer:
        save_logs_and_checkpoints = save

        def __init__(self) -> None:
            self.wandb_logger = self.tensorboard_logger = None
            self.args = SimpleNamespace(
                logger=SimpleNamespace(logging_steps=1), ckpt=SimpleNamespace(save_steps=10**9)
            )

    target = tmp_path / "metrics.jsonl"
    hooks.add_logger(BasePPOTrainer, str(target))
    made = BasePPOTrainer()
    for step in range(1, 4):
        made.save_logs_and_checkpoints(step, {
            "policy_loss": torch.tensor(0.1), "ppo_kl": 0.0, "response_length": 7, "kl": -0.5,
            "ppo_clip_ratio": 0.1,
            "actor_grad_norm": float("nan") if step == 3 else 1.0, "reward": None,
            "generated_samples": ["text", 1.0],
        })  # fmt: skip
    made.tensorboard_logger.log_eval(3, {"pass@1": 0.5})
    made.tensorboard_logger.close()
    lines = [json.loads(line) for line in target.read_text().splitlines()]
    assert lines[0] == {"step": 1, "metrics": {
        "policy_loss": pytest.approx(0.1), "ppo_kl": 0.0, "response_length": 7.0, "kl": -0.5,
        "ppo_clip_ratio": 0.1, "actor_grad_norm": 1.0,
    }}  # fmt: skip
    assert lines[-1] == {"step": 3, "metrics": {"eval/pass@1": 0.5}}
    shown = inspect_path(str(target), ())
    assert (shown.framework, shown.rows) == ("OpenRLHF", 3)


def test_modules_are_changed_when_they_are_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "imported_later.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    changed: list[Any] = []
    importer = Importer({"imported_later": changed.append})
    monkeypatch.setattr(sys, "meta_path", [importer, *sys.meta_path])
    module = importlib.import_module("imported_later")
    assert changed == [module]
    assert module.value == 1
    importlib.reload(module)
    assert changed == [module]


def test_rays_environment_calls_install() -> None:
    made = hooks.runtime_environment({"env_vars": {"NCCL_DEBUG": "WARN"}, "pip": []})
    assert made["worker_process_setup_hook"] == "rlproof.integrations.openrlhf.install"
    assert made["env_vars"]["NCCL_DEBUG"] == "WARN"
    assert made["pip"] == []
