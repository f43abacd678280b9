"""QST001: the loss is about 0."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.row import Row
from rlproof.watch.rules.model import Alarm, Rule

_SMALL = 1e-3
_ROWS = 3


class Zero:
    """Steps with a loss near 0 and a gradient that is not."""

    def __init__(self, facts: Facts) -> None:
        self.first: float | None = None
        self.small = self.count = 0

    def see(self, row: Row) -> None:
        """One row."""
        loss = row.get("loss")
        loss = row.get("policy-loss") if loss is None else loss
        norm = row.get("grad-norm")
        if loss is None or norm == 0:
            return
        self.count += 1
        if abs(loss) < _SMALL:
            self.small += 1
            self.first = row.step if self.first is None else self.first

    def alarms(self) -> Iterator[Alarm]:
        """An answer, where somebody would ask."""
        if self.small >= max(_ROWS, self.count / 2):
            yield Alarm(
                "the loss is about 0: normal, because centred advantages cancel in its value at "
                "ratio 1, and what trains is its gradient; with β = 0 nothing else is left of it",
                None, self.first, self.small, self.count,
            )  # fmt: skip


RULE = Rule(
    code="QST001",
    name="loss-is-zero",
    severity=Severity.NOTE,
    about="log",
    summary="the loss is about 0",
    remedy="watch the gradient norm and the reward instead",
    start=Zero,
    normal=True,
)
