"""LOG002: the mean advantage is not 0, although every group is centred."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.row import Row
from rlproof.watch.rules.model import Alarm, Broken, Rule, evidence

_ROUNDING = 1e-3
_CENTRED = ("population-std", "sample-std", "none", "batch-population-std", "batch-sample-std")


class Centred:
    """Σ A of a batch whose groups sum to 0 each."""

    def __init__(self, facts: Facts) -> None:
        baseline, scale = facts.advantage()
        self.holds = baseline in ("group-mean", "leave-one-out") and scale in _CENTRED
        self.broken = Broken()
        self.by_row = False

    def see(self, row: Row) -> None:
        """One row."""
        mean = row.exact("advantage-mean")
        if mean is None or not self.holds:
            return
        allowed = _ROUNDING * max(1.0, row.exact("advantage-std") or 0.0)
        key = row.key("advantage-mean")
        self.by_row = bool(row.readings["advantage-mean"].framework)
        self.broken.check(row.step, abs(mean) - allowed, lambda: evidence(row.step, key, mean, 0.0))

    def alarms(self) -> Iterator[Alarm]:
        """Where a group baseline is declared; a note where it is not known what was averaged."""
        if self.broken.seen:
            yield self.broken.alarm(
                "the advantages of a batch do not sum to 0, although each group is centred: "
                "the baseline is another one, rows were dropped after it was taken, or the mean is "
                "one over tokens",
                None if self.by_row else Severity.NOTE,
            )


RULE = Rule(
    code="LOG002",
    name="advantages-not-centred",
    severity=Severity.WARNING,
    about="log",
    summary="the mean advantage is not 0 under a group baseline",
    remedy="take each group's own mean off its rewards, before rows are dropped",
    start=Centred,
    needs=("advantage-mean",),
    faults=("ADV001", "ADV004"),
)
