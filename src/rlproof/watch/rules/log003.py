"""LOG003: an advantage larger than any group of its size can give."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.row import Row
from rlproof.watch.rules.model import Alarm, Broken, Rule, evidence


def bound(group_size: int, scale: str | None) -> float | None:
    """The largest |A| of a group: one member against all the others.

    √(G − 1) under the population std, (G − 1)/√G under the sample std: with r = (1, 0, …, 0)
    the mean is 1/G and Σ(r − r̄)² = (G − 1)/G, so A = ((G − 1)/G)/√((G − 1)/G²) = √(G − 1),
    times √((G − 1)/G) where G − 1 divides. That this is the largest: with Σ Aᵢ = 0 and
    Σ Aᵢ² = G the others sum to −A₁, so G − A₁² = Σ_{i>1} Aᵢ² ≥ A₁²/(G − 1).
    """
    if scale == "population-std":
        return sqrt(group_size - 1)
    return (group_size - 1) / sqrt(group_size) if scale == "sample-std" else None


class Bounded:
    """The extreme advantages of each step."""

    def __init__(self, facts: Facts) -> None:
        baseline, scale = facts.advantage()
        known = facts.group_size and baseline == "group-mean"
        self.bound = bound(facts.group_size, scale) if known and facts.group_size else None
        self.size = facts.group_size
        self.broken = Broken()

    def see(self, row: Row) -> None:
        """One row."""
        if self.bound is None:
            return
        both = ((row.exact(metric), metric) for metric in ("advantage-max", "advantage-min"))
        known = [(abs(value), metric) for value, metric in both if value is not None]
        if known:
            (value, metric), limit = max(known), self.bound
            text = f"|{row.key(metric)}| in groups of {self.size}"
            self.broken.check(
                row.step, value - limit * 1.001, lambda: evidence(row.step, text, value, limit)
            )

    def alarms(self) -> Iterator[Alarm]:
        """Where size and scale are declared."""
        if self.broken.seen:
            yield self.broken.alarm(
                "an advantage is larger than a group of this size can give: it was normalised by "
                "something else than the spread of its own group"
            )


RULE = Rule(
    code="LOG003",
    name="advantage-out-of-bounds",
    severity=Severity.ERROR,
    about="log",
    summary="|A| is above √(G − 1), or (G − 1)/√G with the sample std",
    remedy="divide by the std of the whole group, the member itself included",
    start=Bounded,
    needs=("advantage-max",),
    faults=("ADV001", "ADV007"),
)
