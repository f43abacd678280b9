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
        if step.mask is None or not step.mask.any():
            return
        known = [(name, values) for name in _POLICIES if (values := step.get(name)) is not None]
        tops = [(float(np.max(v, where=step.mask, initial=-np.inf)), name) for name, v in known]
        if tops:
            top, name = max(tops)
            slack = 1e-2 if step.rounding > 1e-3 else 1e-4
            text = f"largest of {name} on tokens that count"
            self.broken.check(
                step.step, top - slack, lambda: evidence(step.step, text, top, "at most 0")
            )

    def alarms(self) -> Iterator[Alarm]:
        """Of all policies together."""
        if self.broken.seen:
            yield self.broken.alarm(
                "no probability is above 1: these are negated, are a filler, or are not log-probs"
            )


RULE = Rule(
    code="STP011",
    name="log-prob-above-zero",
    severity=Severity.ERROR,
    about="step",
    summary="a log-prob of a real token is above 0",
    remedy="store log π, not −log π or a filler, and mask before anything is averaged",
    start=Positive,
    needs=(),
    faults=("MET004",),
)
