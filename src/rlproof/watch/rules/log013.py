"""LOG013: the divergence falls to nothing from one step to the next."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from statistics import median

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.row import Row
from rlproof.watch.rules.curves import usable
from rlproof.watch.rules.model import Alarm, Broken, Rule, evidence

_ROWS = 5
_TIMES = 1000.0
_NATS = 1e-3


class Fall:
    """Each divergence against the median of those before it."""

    def __init__(self, facts: Facts) -> None:
        self.before: deque[float] = deque(maxlen=_ROWS)
        self.broken = Broken()

    def see(self, row: Row) -> None:
        """One row."""
        value, key = row.get("kl-to-reference"), row.key("kl-to-reference")
        if not usable(value):
            return
        if len(self.before) == _ROWS and median(self.before) > _NATS:
            usual = median(self.before)
            text = f"{key}; median of the {_ROWS} steps before"
            off = usual / _TIMES - abs(value)
            self.broken.check(row.step, off, lambda: evidence(row.step, text, value, usual))
            if off > 0:
                self.before.clear()  # from here on it is another reference
        self.before.append(value)

    def alarms(self) -> Iterator[Alarm]:
        """A note: a reference that is renewed on purpose does this too."""
        if self.broken.seen:
            yield self.broken.alarm(
                "the divergence from the reference fell to nothing in one step: the policy was "
                "made the new reference, on purpose or when the run was resumed"
            )


RULE = Rule(
    code="LOG013",
    name="reference-renewed",
    severity=Severity.NOTE,
    about="log",
    summary="the divergence from the reference falls to nothing within one step",
    remedy="load the reference from the first checkpoint when the run is resumed",
    start=Fall,
    needs=("kl-to-reference",),
    faults=("LOP003",),
)
