"""LOG012: every completion is cut off."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.row import Row
from rlproof.watch.rules.model import Alarm, Rule, evidence

_ROWS = 20
_ALL = 0.99


class Cut:
    """The share of completions that end at the limit, in the last steps."""

    def __init__(self, facts: Facts) -> None:
        self.last: deque[tuple[float, float]] = deque(maxlen=_ROWS)
        self.key = ""
        self.count = 0

    def see(self, row: Row) -> None:
        """One row."""
        share = row.exact("truncated")
        if share is not None:
            self.key = row.key("truncated")
            self.count += 1
            self.last.append((row.step, share))

    def alarms(self) -> Iterator[Alarm]:
        """For as long as it lasts."""
        if len(self.last) < _ROWS or min(share for _, share in self.last) < _ALL:
            return
        step, share = self.last[0]
        yield Alarm(
            "every completion ends at the length limit: the reward never sees an end, and no stop "
            "token is trained",
            evidence(step, f"{self.key}, and ever since", share, f"below {_ALL}"),
            step,
            _ROWS,
            self.count,
        )


RULE = Rule(
    code="LOG012",
    name="all-truncated",
    severity=Severity.WARNING,
    about="log",
    summary="every completion of the last steps hits the length limit",
    remedy="raise the limit, or check that the end token is sampled, kept and recognised",
    start=Cut,
    needs=("truncated",),
    faults=("MSK005",),
)
