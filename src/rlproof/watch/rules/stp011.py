"""STP011: a log-prob is above 0."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.rules.model import Alarm, Broken, Rule, evidence
from rlproof.watch.seen import StepSeen

_POLICIES = ("new_logps", "old_logps", "ref_logps", "sampler_logps")


class Positive:
    """Log-probs of real tokens."""

    def __init__(self, facts: Facts) -> None:
        self.broken = Broken()

    def see(self, step: StepSeen) -> None:
        """One recorded step."""
        for name in _POLICIES:
            values = step.get(name)
            if values is None or step.mask is None or not step.mask.any():
                continue
            top = float(np.nanmax(np.where(step.mask, values, np.nan), initial=-np.inf))
            slack = 1e-2 if step.rounding > 1e-3 else 1e-4
            self.broken.check(
                step.step,
                top - slack,
                lambda n=name, v=top: evidence(step.step, f"largest of {n}", v, "at most 0"),  # type: ignore[misc]
            )

    def alarms(self) -> Iterator[Alarm]:
        """Of all policies together."""
        if self.broken.seen:
            yield self.broken.alarm(
                "no probability is above 1: these are negated, are a filler, or are not log-probs"
            )


RULE = Rule(
    code="STP011",
    name="positive-log-prob",
    severity=Severity.ERROR,
    about="step",
    summary="a log-prob of a real token is above 0",
    remedy="store log π, not −log π or a filler, and mask before anything is averaged",
    start=Positive,
    needs=(),
    faults=("MET004",),
)
