"""STP010: sampler and trainer differ as two temperatures do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rlproof.faults.model import Evidence, Severity, rounded
from rlproof.watch.facts import Facts
from rlproof.watch.rules.model import Alarm, Rule
from rlproof.watch.rules.pairs import LEAST, Line, engines
from rlproof.watch.seen import StepSeen

_SLOPE = 0.1


class Slope:
    """The least squares line of the sampler's log-probs over the trainer's.

    log π_T = x/T − log Σ π^(1/T) with x = log π_1. The last term is unknown without the logits,
    and is larger where x is lower, so the slope lies between 1 and 1/T.
    """

    def __init__(self, facts: Facts) -> None:
        self.line = Line()
        self.gap = 0.0
        self.first: float | None = None
        self.steps = 0

    def see(self, step: StepSeen) -> None:
        """One recorded step."""
        pair = engines(step) if not step.record.update else None
        if pair is None:
            return
        self.first = step.step if self.first is None else self.first
        self.steps += 1
        self.line.add(pair[0].ravel(), pair[1].ravel())
        self.gap += float(np.nansum(np.abs(pair[0] - pair[1])))

    def alarms(self) -> Iterator[Alarm]:
        """Where pairs lie close to a line that is not the diagonal."""
        slope, count = self.line.slope, self.line.count
        if count < LEAST or self.line.correlation < 0.95 or self.gap < 0.02 * count:
            return
        if abs(slope - 1) <= _SLOPE or slope <= 0:
            return
        side = "at most" if slope > 1 else "at least"
        yield Alarm(
            f"the sampler's log-probs follow the trainer's with slope {slope:.3f}, as those of "
            f"another temperature do ({side} {1 / slope:.3g} of the trainer's; without logits no "
            "more can be said), or those of much older weights",
            Evidence(f"slope of the line through {count} tokens", rounded(slope, 4), 1.0),
            self.first, self.steps, self.steps,
        )  # fmt: skip


RULE = Rule(
    code="STP010",
    name="sampler-temperature",
    severity=Severity.WARNING,
    about="step",
    summary="the log-probs of sampler and trainer lie on a line whose slope is not 1",
    remedy="divide the logits by the sampling temperature wherever log-probs are computed",
    start=Slope,
    needs=("sampler_logps",),
    faults=("LGP001", "LGP008"),
)
