"""STP014: updates leave the log-probs as they were."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rlproof.faults.model import Evidence, Severity
from rlproof.watch.facts import Facts
from rlproof.watch.rules.model import Alarm, Rule
from rlproof.watch.rules.pairs import same_batch
from rlproof.watch.seen import StepSeen

_STEPS = 3


class Still:
    """Log-probs of one batch before and after an update. One step may warm up at rate 0."""

    def __init__(self, facts: Facts) -> None:
        self.before: StepSeen | None = None
        self.still = self.moved = 0
        self.first: float | None = None

    def see(self, step: StepSeen) -> None:
        """One recorded step; the one before it is kept."""
        before, self.before = self.before, step
        if before is None or not step.record.update or not same_batch(before, step):
            return
        adv, mask = step.get("advantages"), step.mask
        new, start = step.get("new_logps"), before.get("new_logps")
        if adv is None or mask is None or new is None or start is None:
            return
        if not np.abs(adv).any() or not mask.any():
            return
        if np.array_equal(new[mask], start[mask]):
            self.still += 1
            self.first = step.step if self.first is None else self.first
        else:
            self.moved += 1

    def alarms(self) -> Iterator[Alarm]:
        """Where no recorded update has ever moved anything."""
        if self.still >= _STEPS and not self.moved:
            yield Alarm(
                "no update changes the policy's log-probs, although there are advantages",
                Evidence("largest change of a log-prob over an update", 0.0, "above 0"),
                self.first, self.still, self.still,
            )  # fmt: skip


RULE = Rule(
    code="STP014",
    name="policy-stands-still",
    severity=Severity.ERROR,
    about="step",
    summary="log-probs are the same to the bit after an update with advantages",
    remedy="compare optimizer and model parameters; check requires_grad and the learning rate",
    start=Still,
    needs=("new_logps", "advantages", "update"),
    faults=("LOP006",),
)
