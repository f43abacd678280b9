"""A first step with something wrong in it ends the run before a checkpoint is written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.train.test_trainer import config, trainer  # noqa: E402

from rlproof.errors import FirstStepError  # noqa: E402
from rlproof.space.published import OBJECTIVES  # noqa: E402
from rlproof.train import checkpoint  # noqa: E402
from rlproof.train import step as updates  # noqa: E402
from rlproof.train import trainer as loop  # noqa: E402
from rlproof.train.first_step import facts  # noqa: E402
from rlproof.watch.facts import facts_of  # noqa: E402

CHECK = {"record": {"check_first_step": True}, "checkpoint": {"every": 1},
         "batch": {"prompts": 4, "group": 4, "epochs": 2}}  # fmt: skip


def leaking(*args: Any, **kwargs: Any) -> Any:
    """Advantages of the batch, scaled, where those of a group are declared (ADV001)."""
    _, kept = real_advantages(*args, **kwargs)
    rewards = torch.tensor(args[1])[:, 0]
    return ((rewards - rewards.mean()) / (rewards.std() + 1e-4)).float(), kept


real_advantages = loop.advantages_of


def turned(*args: Any, **kwargs: Any) -> Any:
    adv, kept = real_advantages(*args, **kwargs)
    return -adv, kept


@pytest.mark.parametrize(("plant", "code"), [(leaking, "STP003"), (turned, "STP003")])
def test_wrong_advantages(plant, code, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "advantages_of", plant)
    one = trainer(tmp_path / "run", **CHECK)
    with pytest.raises(FirstStepError, match=f"the first step is wrong.*{code}") as caught:
        one.train()
    assert caught.value.exit_code == 1
    assert not checkpoint.saved(tmp_path / "run")


def test_a_loss_that_is_maximised(tmp_path, monkeypatch):
    real = updates.fused_batch

    def wrong(part: Any, scope: Any) -> Any:
        made = real(part, scope)
        return replace(made, advantages=-made.advantages)

    monkeypatch.setattr(updates, "fused_batch", wrong)
    with pytest.raises(FirstStepError, match=r"SUR005|STP001"):
        trainer(tmp_path / "run", **CHECK).train()


def test_old_log_probs_of_another_temperature(tmp_path, monkeypatch):
    one = trainer(tmp_path / "run", **CHECK)
    real = one.engine.generate

    def hot(*args: Any, **kwargs: Any) -> Any:
        batch = real(*args, **kwargs)
        return replace(batch, logps=batch.logps * 0.5)

    monkeypatch.setattr(one.engine, "generate", hot)
    with pytest.raises(FirstStepError, match="STP005"):
        one.train()


def test_a_fused_gradient_that_is_off(tmp_path, monkeypatch):
    """As if a kernel had lost a factor: 1 % of the states' gradient."""
    from rlproof.train.fused import head

    real = head._HandOver.backward

    def off(ctx: Any, *grads: Any) -> Any:
        first, *rest = real(ctx, *grads)
        return (first * 1.01, *rest)

    monkeypatch.setattr(head._HandOver, "backward", staticmethod(off))
    with pytest.raises(FirstStepError, match=r"differs from that of autograd by 0\.01"):
        trainer(tmp_path / "run", **CHECK).train()


def test_without_the_check_nothing_is_judged(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "advantages_of", turned)
    trainer(tmp_path / "run").train()


@pytest.mark.parametrize("name", OBJECTIVES)
def test_what_is_declared_is_a_fact(name, tmp_path):
    objective = OBJECTIVES[name].objective
    known = facts_of(facts(config(tmp_path), objective, 16)).known()
    assert known["objective"] == name
    assert known["updates"] == 1
