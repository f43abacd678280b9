"""STP017: the same weights give the same tokens other log-probs the second time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.rules.model import Alarm, Broken, Rule, evidence
from rlproof.watch.seen import StepSeen


class Again:
    """The distance of the log-probs of the loss from those of a second pass."""

    def __init__(self, facts: Facts) -> None:
        self.broken = Broken()

    def see(self, step: StepSeen) -> None:
        """One recorded step."""
        new, again, mask = step.get("new_logps"), step.get("repeat_logps"), step.mask
        if new is None or again is None or mask is None or not mask.any():
            return
        gap = np.abs(new - again)[mask]
        if not np.isfinite(gap).all():
            return
        off, mean = step.tolerance(again[mask]), float(gap.mean())
        text = "mean |difference| of two passes over the same tokens, nats"
        self.broken.check(step.step, mean - off, lambda: evidence(step.step, text, mean, 0.0))

    def alarms(self) -> Iterator[Alarm]:
        """Where two passes differ by more than rounding."""
        if self.broken.seen:
            yield self.broken.alarm(
                "the forward pass of the loss and one in evaluation mode give other log-probs: "
                "dropout is on, and ratios carry its noise"
            )


RULE = Rule(
    code="STP017",
    name="forward-not-repeatable",
    severity=Severity.WARNING,
    about="step",
    summary="two passes of the same weights over the same tokens differ",
    remedy="set every dropout of the model to 0, or compute log-probs in evaluation mode",
    start=Again,
    needs=("repeat_logps",),
    faults=("LOP012",),
)
