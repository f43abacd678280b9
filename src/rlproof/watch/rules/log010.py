"""LOG010: the sampler drifts away from the trainer."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.row import Row
from rlproof.watch.rules.curves import Ends, usable
from rlproof.watch.rules.model import Alarm, Rule, evidence

_ROWS = 10
_TIMES = 5.0
_NATS = 0.05


class Drift:
    """The gap of log-probs between sampler and trainer at the start and now."""

    def __init__(self, facts: Facts) -> None:
        self.ends = Ends(_ROWS)
        self.key = ""
        self.count = 0

    def see(self, row: Row) -> None:
        """One row."""
        gap = row.exact("sampler-logprob-gap")
        if usable(gap):
            self.key = row.key("sampler-logprob-gap")
            self.count += 1
            self.ends.add(row.step, gap)

    def alarms(self) -> Iterator[Alarm]:
        """When all of the last values are above all of the first, and far above."""
        if not self.ends.full:
            return
        before, after = self.ends.medians()
        if after > max(_TIMES * before, _NATS) and min(self.ends.last) > max(self.ends.first):
            step = self.ends.steps[0]
            text = f"median of {self.key} from here on; of the first {_ROWS} steps"
            yield Alarm(
                "the sampler has moved away from the trainer since the run began: its weights are "
                "no longer renewed, or it scores differently",
                evidence(step, text, after, before),
                step,
                _ROWS,
                self.count,
            )


RULE = Rule(
    code="LOG010",
    name="sampler-drifts-away",
    severity=Severity.WARNING,
    about="log",
    summary="the gap between sampler and trainer grew fivefold and stayed",
    remedy="compare a checksum of the sampler's weights with the trainer's after a synchronisation",
    start=Drift,
    needs=("sampler-logprob-gap",),
)
