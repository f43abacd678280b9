"""QST002: the clip fraction is always 0."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.row import Row
from rlproof.watch.rules.model import Alarm, Rule

_ROWS = 3


class Never:
    """Steps without a clipped token."""

    def __init__(self, facts: Facts) -> None:
        self.several = (facts.updates or 1) > 1
        self.first: float | None = None
        self.clipped = self.count = 0

    def see(self, row: Row) -> None:
        """One row."""
        share = row.get("clip-fraction")
        if share is None:
            return
        self.first = row.step if self.first is None else self.first
        self.count += 1
        self.clipped += share != 0

    def alarms(self) -> Iterator[Alarm]:
        """An answer, where somebody would ask."""
        if self.clipped or self.count < _ROWS:
            return
        more = (
            "; that old log-probs are refreshed would look the same, which a step recorded with "
            "`update=` decides" if self.several else ""
        )  # fmt: skip
        yield Alarm(
            "no token is ever clipped: normal, because in the first update of a batch the ratio "
            "is 1, and later ones may stay inside the range" + more,
            None, self.first, self.count, self.count,
        )  # fmt: skip


RULE = Rule(
    code="QST002",
    name="clip-fraction-is-zero",
    severity=Severity.NOTE,
    about="log",
    summary="no token is ever clipped",
    remedy="record a step with `update=` where a batch is used several times",
    start=Never,
    normal=True,
)
