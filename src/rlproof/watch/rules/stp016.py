"""STP016: the sampler has other weights than the trainer."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rlproof.faults.model import Evidence, Severity, rounded
from rlproof.watch.facts import Facts
from rlproof.watch.rules.model import Alarm, Rule
from rlproof.watch.rules.pairs import LEAST, engines
from rlproof.watch.rules.stp007 import Shifted
from rlproof.watch.rules.stp009 import Surer
from rlproof.watch.rules.stp010 import Slope
from rlproof.watch.seen import StepSeen

_APART = 0.1
"""Mean gap in nats from which two engines are called apart; half precision gives 0.01 to 0.05."""
_GROWN = 5
_STEPS = 3


class Behind:
    """The mean gap of every step, and what else would explain it."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.others = (Shifted(facts), Surer(facts), Slope(facts))
        self.gaps: list[float] = []
        self.first_gap = self.last_gap = self.tolerance = 0.0
        self.first: float | None = None
        self.steps = self.count = self.beyond = 0
        self.same = self.noisy = False

    def see(self, step: StepSeen) -> None:
        """One recorded step, before its first update."""
        if step.record.update or (pair := engines(step)) is None:
            return
        for other in self.others:
            other.see(step)
        trainer, sampler = (side[np.isfinite(side)] for side in pair)
        if not len(trainer):
            return
        self.count += len(trainer)
        self.steps += 1
        self.last_gap = float(np.abs(trainer - sampler).mean())
        if self.steps == 1:
            self.first_gap = self.last_gap
        facts = self.facts.over(step.declared)
        self.same = facts.engine == "same"
        self.tolerance = step.tolerance(trainer) if self.same else _APART
        if self.last_gap > self.tolerance:
            self.beyond += 1
            self.first = step.step if self.first is None else self.first
        self.noisy |= _noise(step) > 0.3 * self.last_gap

    def alarms(self) -> Iterator[Alarm]:
        """Where nothing else explains it: of one code at once, of two engines by its growth."""
        if self.count < LEAST or self.noisy or any(list(other.alarms()) for other in self.others):
            return
        grown = self.last_gap > _GROWN * self.first_gap and self.steps >= _STEPS
        if self.last_gap <= self.tolerance or not (self.same or grown):
            return
        why = "of the same code" if self.same else f"{self.first_gap:.3g} at the first record"
        yield Alarm(
            "the sampler gives the tokens other log-probs than the trainer, in no order that a "
            "temperature or a truncation would have: it has other, older weights",
            Evidence(f"mean |gap| in nats, {why}", rounded(self.last_gap, 4), 0.0),
            self.first, self.beyond, self.steps,
        )  # fmt: skip


def _noise(step: StepSeen) -> float:
    """How far the trainer is from itself, which explains as much of its gap to the sampler."""
    new, again, mask = step.get("new_logps"), step.get("repeat_logps"), step.mask
    if new is None or again is None or mask is None or not mask.any():
        return 0.0
    return float(np.abs(new - again)[mask].mean())


RULE = Rule(
    code="STP016",
    name="sampler-left-behind",
    severity=Severity.ERROR,
    about="step",
    summary="sampler and trainer score the same tokens with different weights",
    remedy="give the sampler the trainer's weights before every rollout, adapters merged",
    start=Behind,
    needs=("sampler_logps",),
)
