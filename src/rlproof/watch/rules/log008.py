"""LOG008: a share that is none."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.row import Row
from rlproof.watch.rules.model import Alarm, Broken, Rule, evidence


class Shares:
    """Every metric whose unit is a share lies from 0 to 1."""

    def __init__(self, facts: Facts) -> None:
        self.broken = Broken()

    def see(self, row: Row) -> None:
        """One row."""
        shares = [
            (max(-value, value - 1), value, f"{reading.key}, a {reading.unit}")
            for metric, reading in row.readings.items()
            if reading.unit.startswith("share") and (value := row.exact(metric)) is not None
        ]
        if shares:
            off, value, text = max(shares)
            self.broken.check(
                row.step, off - 1e-6, lambda: evidence(row.step, text, value, "0 to 1")
            )

    def alarms(self) -> Iterator[Alarm]:
        """Of all shares together."""
        if self.broken.seen:
            yield self.broken.alarm(
                "a share is below 0 or above 1: it counts other tokens above than below the line, "
                "or is in percent"
            )


RULE = Rule(
    code="LOG008",
    name="share-out-of-range",
    severity=Severity.WARNING,
    about="log",
    summary="a share is below 0 or above 1",
    remedy="count the same rows or tokens in numerator and denominator",
    start=Shares,
    faults=("MET001", "MET003"),
)
