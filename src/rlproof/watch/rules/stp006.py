"""STP006: the old log-probs follow the policy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.rules.model import Alarm, Broken, Rule, evidence
from rlproof.watch.rules.pairs import same_batch
from rlproof.watch.seen import StepSeen


class Refreshed:
    """ρ of later updates against the log-probs of the first."""

    def __init__(self, facts: Facts) -> None:
        self.before: StepSeen | None = None
        self.broken = Broken()

    def see(self, step: StepSeen) -> None:
        """One recorded step; the one before it is kept."""
        first = self.before
        if step.record.update == 0:
            self.before = step
        if first is None or not step.record.update or not same_batch(first, step):
            return
        new, old, mask = step.get("new_logps"), step.get("old_logps"), step.mask
        start = first.get("new_logps")
        if new is None or old is None or mask is None or start is None:
            return
        moved = float(np.abs(new - start)[mask].max(initial=0.0))
        ratio = float(np.abs(new - old)[mask].max(initial=0.0))
        stuck = moved > 1e-6 and ratio <= 1e-12
        text = f"update {step.record.update}: max |log ρ|; log-probs moved since update 0"
        self.broken.check(
            step.step, moved if stuck else 0.0, lambda: evidence(step.step, text, ratio, moved)
        )

    def alarms(self) -> Iterator[Alarm]:
        """Where the policy moved and the ratio did not."""
        if self.broken.seen:
            yield self.broken.alarm(
                "the ratio is exactly 1 although the policy has moved since its batch was drawn: "
                "the old log-probs are taken anew, and the clip does nothing"
            )


RULE = Rule(
    code="STP006",
    name="old-log-probs-follow",
    severity=Severity.ERROR,
    about="step",
    summary="the ratio is exactly 1 after the policy has moved",
    remedy="take old log-probs once a batch, before its first update",
    start=Refreshed,
    needs=("new_logps", "old_logps", "update"),
    faults=("LOP001",),
)
