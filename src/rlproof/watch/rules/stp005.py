"""STP005: the ratio is not 1 before the first update."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.rules.model import Alarm, Broken, Rule, evidence
from rlproof.watch.seen import StepSeen

_MEAN = 0.05
_OUTSIDE = 0.01
_LARGEST = 10.0
"""Nats that no rounding explains, not even of one token."""


class Before:
    """log ρ of the first use of a batch.

    Rounding of half precision gives a mean |log ρ| of about 0.01 nats, and passes.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.broken = Broken()

    def see(self, step: StepSeen) -> None:
        """One recorded step."""
        first = step.record.update == 0 or self.facts.over(step.declared).updates == 1
        new, old, mask = step.get("new_logps"), step.get("old_logps"), step.mask
        if not first or new is None or old is None or mask is None or not mask.any():
            return
        gap = np.abs(new - old)[mask]
        mean, outside = float(gap.mean()), float((np.abs(np.expm1(new - old))[mask] > 0.2).mean())
        largest = float(gap.max())
        off = max(mean - _MEAN, outside - _OUTSIDE, largest - _LARGEST)
        text = (
            f"mean |log ρ| before any update ({outside:.2%} of the tokens outside 1 ± 0.2, "
            f"largest {largest:.3g})"
        )
        self.broken.check(step.step, off, lambda: evidence(step.step, text, mean, 0.0))

    def alarms(self) -> Iterator[Alarm]:
        """Where the record says that no update came before."""
        if self.broken.seen:
            yield self.broken.alarm(
                "the ratio is not 1 before the first update: old and new log-probs are not scored "
                "by the same policy in the same way"
            )


RULE = Rule(
    code="STP005",
    name="ratio-off-before-update",
    severity=Severity.ERROR,
    about="step",
    summary="new and old log-probs differ although the batch has not been used yet",
    remedy="score both in one way: no dropout, the same precision, padding and temperature",
    start=Before,
    needs=("new_logps", "old_logps", "update"),
    faults=("LGP001", "LGP005", "LOP002", "MSK013"),
)
