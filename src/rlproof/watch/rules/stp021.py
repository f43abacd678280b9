"""STP021: the reference gives fixed completions other log-probs than before."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.rules.model import Alarm, Broken, Rule, evidence
from rlproof.watch.seen import Array, StepSeen


class Anchored:
    """Log-probs of the reference on completions that stay the same, against the first ones."""

    def __init__(self, facts: Facts) -> None:
        self.first: Array | None = None
        self.broken = Broken()

    def see(self, step: StepSeen) -> None:
        """One recorded step."""
        anchor = step.get("anchor_logps")
        if anchor is None or not anchor.size or not np.isfinite(anchor).all():
            return
        if self.first is None or self.first.shape != anchor.shape:
            self.first = anchor
            return
        gap = float(np.abs(anchor - self.first).mean())
        text = "mean change of the reference's log-probs of the same tokens, nats"
        self.broken.check(
            step.step,
            gap - step.tolerance(anchor),
            lambda: evidence(step.step, text, gap, 0.0),
        )

    def alarms(self) -> Iterator[Alarm]:
        """Where it has moved."""
        if self.broken.seen:
            yield self.broken.alarm(
                "the reference has changed since the first record: it shares weights with the "
                "policy, or follows it, and the divergence pulls to nothing"
            )


RULE = Rule(
    code="STP021",
    name="reference-has-moved",
    severity=Severity.ERROR,
    about="step",
    summary="the reference gives the same completions other log-probs than before",
    remedy="copy the weights of the reference once, or leave the adapter out for it",
    start=Anchored,
    needs=("anchor_logps",),
    faults=("LOP003",),
)
