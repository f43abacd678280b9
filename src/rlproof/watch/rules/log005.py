"""LOG005: a divergence that can't be negative is."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.row import Row
from rlproof.watch.rules.model import Alarm, Broken, Rule, evidence

_ROUNDING = 1e-5


class Negative:
    """k2 and k3, which are 0 or more for every token."""

    def __init__(self, facts: Facts) -> None:
        self.estimator = facts.estimator
        self.broken = Broken()

    def see(self, row: Row) -> None:
        """One row."""
        value, reading = row.get("kl-to-reference"), row.readings.get("kl-to-reference")
        if value is None or reading is None:
            return
        estimator = self.estimator or reading.estimator
        if estimator in ("k2", "k3"):
            text = f"{reading.key}, a mean of {estimator}"
            self.broken.check(
                row.step, -value - _ROUNDING, lambda: evidence(row.step, text, value, "0 or more")
            )

    def alarms(self) -> Iterator[Alarm]:
        """Where the estimator is known."""
        if self.broken.seen:
            yield self.broken.alarm(
                "the divergence is negative, and exp(x) − x − 1 ≥ 0 for every x: another formula "
                "is logged, or tokens take part that are padding"
            )


RULE = Rule(
    code="LOG005",
    name="negative-divergence",
    severity=Severity.ERROR,
    about="log",
    summary="k2 or k3 is below 0",
    remedy="log exp(ref − new) − (ref − new) − 1 over real tokens",
    start=Negative,
    needs=("kl-to-reference",),
    faults=("KLD006", "KLD001"),
)
