"""STP009: the sampler is surer of every token than the trainer."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp

import numpy as np

from rlproof.faults.model import Evidence, Severity, rounded
from rlproof.watch.facts import Facts
from rlproof.watch.rules.model import Alarm, Rule
from rlproof.watch.rules.pairs import LEAST, engines
from rlproof.watch.seen import StepSeen

_TINY = 0.02


class Surer:
    """log π_trainer − log π_sampler: under truncation the log of the mass kept, never above 0."""

    def __init__(self, facts: Facts) -> None:
        self.above = self.count = self.steps = 0
        self.total = 0.0
        self.least = 0.0
        self.first: float | None = None

    def see(self, step: StepSeen) -> None:
        """One recorded step."""
        pair = engines(step) if not step.record.update else None
        if pair is None:
            return
        gap = (pair[0] - pair[1])[np.isfinite(pair[0])]
        self.first = step.step if self.first is None else self.first
        self.steps += 1
        self.count += len(gap)
        self.above += int((gap > _TINY).sum())
        self.total += float(gap.sum())
        self.least = min(self.least, float(gap.min(initial=0.0)))

    def alarms(self) -> Iterator[Alarm]:
        """One-sided, which noise is not."""
        if self.count < LEAST or self.above > 0.002 * self.count:
            return
        mean = self.total / self.count
        if mean < -_TINY:
            text = (
                f"{self.count} tokens, none where the trainer is surer: mean of "
                "π_trainer/π_sampler as exp of the mean gap, which is the mass kept"
            )
            yield Alarm(
                "the sampler is surer than the trainer on every token, as top-k or top-p with "
                "renormalised log-probs make it (or a low temperature on sure tokens)",
                Evidence(text, rounded(exp(mean), 4), 1.0), self.first, self.steps, self.steps,
            )  # fmt: skip


RULE = Rule(
    code="STP009",
    name="sampler-truncated",
    severity=Severity.WARNING,
    about="step",
    summary="the log-probs of the sampler are above the trainer's on every token",
    remedy="sample from the full distribution: top_p 1, top_k off, no penalties",
    start=Surer,
    needs=("sampler_logps",),
    faults=("SMP001",),
)
