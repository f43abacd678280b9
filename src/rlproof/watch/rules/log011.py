"""LOG011: no group has ever had a signal."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.row import Row
from rlproof.watch.rules.model import Alarm, Rule, evidence

_ROWS = 10


class Dead:
    """The share of groups whose rewards are all equal, from the first step on."""

    def __init__(self, facts: Facts) -> None:
        self.first: float | None = None
        self.count = 0
        self.alive = False
        self.key = ""

    def see(self, row: Row) -> None:
        """One row."""
        dead = row.get("zero-variance-groups")
        reading = row.readings.get("zero-variance-groups")
        if dead is None or reading is None or reading.unit != "share of groups":
            return
        if any(word in reading.differs for word in ("count", "percent", "shares")):
            return
        self.key = reading.key
        self.first = row.step if self.first is None else self.first
        self.count += 1
        self.alive = self.alive or dead < 0.999

    def alarms(self) -> Iterator[Alarm]:
        """Only where it never was otherwise: a run that has learned its task ends like this."""
        if self.alive or self.count < _ROWS or self.first is None:
            return
        yield Alarm(
            "all rewards of every group are equal since the first step: the policy has nothing to "
            "learn from",
            evidence(self.first, f"{self.key}, and ever since", 1.0, "less than 1"),
            self.first,
            self.count,
            self.count,
        )


RULE = Rule(
    code="LOG011",
    name="never-a-signal",
    severity=Severity.WARNING,
    about="log",
    summary="every group has had equal rewards since the first step",
    remedy="look at one group: the reward, its parser or the sampling is at fault",
    start=Dead,
    needs=("zero-variance-groups",),
    faults=("ADV003",),
)
