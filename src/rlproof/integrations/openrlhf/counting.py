"""Which batch, update and micro-batch OpenRLHF is at."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rlproof.integrations.losses import Place


@dataclass(slots=True)
class Clock:
    """Where training is: OpenRLHF's `ppo_train` is one batch of completions."""

    batches: int = 0
    update: int = 0
    micro_batch: int = 0

    def begin(self) -> None:
        """A new batch of completions. What an update has accumulated stays."""
        self.batches += 1
        self.update = 0

    def ran(self, stepped: bool) -> None:
        """One micro-batch was used, and the optimizer moved or not."""
        self.micro_batch = 0 if stepped else self.micro_batch + 1
        self.update += stepped

    def place(self) -> Place:
        """Of the next micro-batch. Outside of `ppo_train` nothing is known of its batch."""
        known = self.batches > 0
        step = self.batches - 1 if known else self.update
        return Place(step, self.update if known else None, self.micro_batch)


def count_updates(trainer: type, clock: Clock) -> None:
    """Let the clock follow an `ActorPPOTrainer`."""
    ppo_train: Callable[..., Any] = trainer.ppo_train  # type: ignore[attr-defined]
    training_step: Callable[..., Any] = trainer.training_step  # type: ignore[attr-defined]

    @functools.wraps(ppo_train)
    def counted_train(self: Any, *args: Any, **kwargs: Any) -> Any:
        clock.begin()
        return ppo_train(self, *args, **kwargs)

    @functools.wraps(training_step)
    def counted_step(self: Any, experience: Any, kl_ctl: Any, step: int, *args: Any) -> Any:
        result = training_step(self, experience, kl_ctl, step, *args)
        clock.ran(_stepped(self, clock, step))
        return result

    trainer.ppo_train = counted_train  # type: ignore[attr-defined]
    trainer.training_step = counted_step  # type: ignore[attr-defined]


def _stepped(trainer: Any, clock: Clock, step: int) -> bool:
    """Whether the optimizer moved after this micro-batch; DeepSpeed counts to its own number."""
    try:
        if trainer.args.train.dynamic_batch_enable:
            return bool(trainer.replay_buffer.dynamic_optimizer_step[step])
        return clock.micro_batch + 1 >= int(trainer.strategy.accumulated_gradient)
    except (AttributeError, TypeError, IndexError):
        return True
