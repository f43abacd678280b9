"""A mixin and a function that record steps of TRL's `GRPOTrainer`, its subclasses included.

    trainer = record_steps(GRPOTrainer(…), "steps.jsonl")
    trainer.train()

One record of what was sampled, and one of each micro-batch at its backward pass, with the gradient
that reaches the log-probs: whatever divides the loss on its way is in it. Training itself is the
same to the bit. Checked against TRL 1.16. Shapes: B rows, S prompt slots, T slots.
"""

from __future__ import annotations

import os
import warnings
from typing import Any, TypeVar

from rlproof.errors import ConfigError
from rlproof.integrations.trl.declared import facts_of
from rlproof.integrations.trl.mixin import check_trainer, put_before
from rlproof.integrations.trl.rollouts import Anchor, rollout_record, with_samples
from rlproof.integrations.trl.sampling import watched_sampling
from rlproof.integrations.trl.updates import Update
from rlproof.watch.record import EVERY, Recorder

T = TypeVar("T")


class Session:
    """What one trainer's recording remembers."""

    def __init__(self, path: str | os.PathLike[str], every: int) -> None:
        if every < 1:
            raise ConfigError(f"every is {every}, expected 1 or more")
        self.recorder = Recorder(path, every=1)
        self.every = every
        self.anchor = Anchor()
        self.rewards: Any = None
        self.update: Update | None = None
        """The micro-batch whose loss is being computed."""
        self.due = False
        self.step = 0
        self._last: int | None = None
        self._failed = False

    def begin(self, step: int) -> bool:
        """A rollout starts at this step: whether it is one to record.

        It is the first one at or after each step that `every` divides: rollouts of several updates
        may start elsewhere.
        """
        self.due = self._last is None or step // self.every > self._last // self.every
        self._last = self.step = step
        return self.due

    def failed(self, error: Exception) -> None:
        """Recording must not end a run that took days: the first failure is a warning."""
        if not self._failed:
            self._failed = True
            text = f"rlproof: a step was not recorded: {type(error).__name__}: {error}"
            warnings.warn(text, RuntimeWarning, stacklevel=3)


class RecordedSteps:
    """Put before `GRPOTrainer` in the bases of a class; `record_steps` does it to an instance."""

    rlproof_session: Session | None = None

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        session = self._recording()
        if session is None or not session.begin(int(self.state.global_step)):  # type: ignore[attr-defined]
            return super()._generate_and_score_completions(inputs)  # type: ignore[misc]
        with watched_sampling() as drawn:
            output = super()._generate_and_score_completions(inputs)  # type: ignore[misc]
        try:
            facts = facts_of(self)
            record = rollout_record(self, output, drawn, session.rewards)
            record["anchor_logps"] = session.anchor.logps(self, output)
            session.recorder.record(step=session.step, facts=facts, **record)
            output = with_samples(output, drawn)
        except Exception as error:
            session.failed(error)
        return output

    def _calculate_rewards(self, *args: Any, **kwargs: Any) -> Any:
        rewards = super()._calculate_rewards(*args, **kwargs)  # type: ignore[misc]
        if self.rlproof_session is not None:
            self.rlproof_session.rewards = rewards
        return rewards

    def _compute_loss(self, model: Any, inputs: Any) -> Any:
        session = self._recording()
        if session is None or not session.due:
            return super()._compute_loss(model, inputs)  # type: ignore[misc]
        session.update = Update(self, session, inputs)
        try:
            loss = super()._compute_loss(model, inputs)  # type: ignore[misc]
            session.update.await_gradient(loss)
        finally:
            session.update = None
        return loss

    def _get_per_token_logps_and_entropies(self, model: Any, *args: Any, **kwargs: Any) -> Any:
        found = super()._get_per_token_logps_and_entropies(model, *args, **kwargs)  # type: ignore[misc]
        session = self.rlproof_session
        if session is not None and session.update is not None and found[0].requires_grad:
            again = super()._get_per_token_logps_and_entropies  # type: ignore[misc]
            session.update.take(found, lambda: again(model, *args, **kwargs))
        return found

    def _recording(self) -> Session | None:
        """The session, in training; evaluation is not recorded."""
        return self.rlproof_session if self.model.training else None  # type: ignore[attr-defined]


def record_steps(trainer: T, path: str | os.PathLike[str], *, every: int = EVERY) -> T:
    """Record a `GRPOTrainer`, or an instance of a subclass, from now on; returns it.

    Args:
        trainer: before `train()`.
        path: the file of records, for `rlproof inspect`; `{rank}` in it becomes the rank.
        every: the first rollout at or after each step that this divides is recorded.

    Raises:
        ConfigError: the trainer has not the methods of TRL's, or `every` is below 1.
    """
    check_trainer(trainer)
    put_before(trainer, RecordedSteps)
    assert isinstance(trainer, RecordedSteps)
    trainer.rlproof_session = Session(path, every)
    return trainer
