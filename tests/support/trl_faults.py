"""Twelve things that go wrong around the objective, each in one subclass or one setting of TRL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.support import trl_runs as runs


@dataclass(frozen=True)
class Fault:
    """How a run goes wrong, and the rules that must say so; `also` may be said as well."""

    rules: frozenset[str]
    kind: Callable[[], Any] = lambda: None
    """The class of the trainer, None for TRL's own."""
    after: Callable[[Any], None] = lambda trainer: None
    """What is done to the trainer before it trains."""
    settings: dict[str, Any] = field(default_factory=dict)
    also: frozenset[str] = frozenset()


def _stale() -> Any:
    from transformers import AutoModelForCausalLM
    from trl import GRPOTrainer

    class Stale(GRPOTrainer):
        def _generate_single_turn(self, *args: Any, **kwargs: Any) -> Any:
            if not hasattr(self, "copied"):
                self.copied = AutoModelForCausalLM.from_pretrained(self.model.name_or_path)
            current, self.model_wrapped = self.model_wrapped, self.copied
            try:
                return super()._generate_single_turn(*args, **kwargs)
            finally:
                self.model_wrapped = current

    return Stale


def _seeded() -> Any:
    import torch
    from trl import GRPOTrainer

    class Seeded(GRPOTrainer):
        def _generate_single_turn(self, *args: Any, **kwargs: Any) -> Any:
            torch.manual_seed(7)
            return super()._generate_single_turn(*args, **kwargs)

    return Seeded


def _retokenised() -> Any:
    from trl import GRPOTrainer

    class Retokenised(GRPOTrainer):
        def _generate_single_turn(self, *args: Any, **kwargs: Any) -> Any:
            ids, logps = super()._generate_single_turn(*args, **kwargs)
            texts = self.processing_class.batch_decode(ids)
            encode = self.processing_class.encode
            return [encode(text, add_special_tokens=False) for text in texts], logps

    return Retokenised


def _without_end() -> Any:
    from trl import GRPOTrainer

    class WithoutEnd(GRPOTrainer):
        def _generate_and_score_completions(self, inputs: Any) -> Any:
            batch = super()._generate_and_score_completions(inputs)
            batch["completion_mask"] *= batch["completion_ids"] != runs.EOS
            return batch

    return WithoutEnd


def _divided_twice() -> Any:
    from trl import GRPOTrainer

    class DividedTwice(GRPOTrainer):
        def _compute_loss(self, model: Any, inputs: Any) -> Any:
            return super()._compute_loss(model, inputs) / self.current_gradient_accumulation_steps

    return DividedTwice


def _set(name: str, value: Any) -> Callable[[Any], None]:
    return lambda trainer: setattr(trainer.generation_config, name, value)


def _share(trainer: Any) -> None:
    trainer.ref_model = trainer.model


FAULTS = {
    "temperature": Fault(frozenset({"STP010"}), after=_set("temperature", 0.6)),
    "top-k": Fault(frozenset({"STP009"}), after=_set("top_k", 5)),
    "stale sampler": Fault(frozenset({"STP016"}), _stale),
    "dropout": Fault(frozenset({"STP017"}), settings={"dropout": 0.2}),
    "doubled begin": Fault(frozenset({"STP018"}), settings={"double_bos": True}),
    "end left out": Fault(frozenset({"STP019"}), _without_end),
    "all truncated": Fault(
        frozenset({"LOG012"}), after=_set("min_new_tokens", runs.LONGEST),
        settings={"max_steps": 10}, also=frozenset({"STP009"}),
    ),
    "moving reference": Fault(frozenset({"STP021"}), after=_share),
    "repeated seed": Fault(frozenset({"STP022"}), _seeded, settings={"learning_rate": 1e-4}),
    "re-tokenised": Fault(frozenset({"STP020"}), _retokenised),
    "dead groups": Fault(
        frozenset({"LOG011"}), settings={"rewarded": runs.nothing, "max_steps": 10}
    ),
    "divided twice": Fault(frozenset({"STP015"}), _divided_twice),
    "tokens of all, and divided": Fault(
        frozenset({"STP015"}), _divided_twice, settings={"loss_type": "dapo", "beta": 0.0}
    ),
}  # fmt: skip

HEALTHY: dict[str, dict[str, Any]] = {
    "grpo": {"max_steps": 10},
    "two iterations": {"num_iterations": 2, "max_steps": 8},
    "dapo": {"loss_type": "dapo", "beta": 0.0},
    "dapo with large rollouts": {"loss_type": "dapo", "steps_per_generation": 4, "beta": 0.0},
    "bnpo": {"loss_type": "bnpo"},
    "dr_grpo": {"loss_type": "dr_grpo", "scale_rewards": "none"},
    "whole batch": {"scale_rewards": "batch"},
    "truncated left out": {"mask_truncated_completions": True},
}
