"""QST004: the loss is negative, or rises while the reward does."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.row import Row
from rlproof.watch.rules.model import Alarm, Rule


class Signs:
    """Steps with a negative loss."""

    def __init__(self, facts: Facts) -> None:
        self.first: float | None = None
        self.below = self.count = 0

    def see(self, row: Row) -> None:
        """One row."""
        loss = row.get("loss")
        loss = row.get("policy-loss") if loss is None else loss
        if loss is None:
            return
        self.count += 1
        if loss < 0:
            self.below += 1
            self.first = row.step if self.first is None else self.first

    def alarms(self) -> Iterator[Alarm]:
        """An answer, where somebody would ask."""
        if self.below:
            yield Alarm(
                "the loss is negative: normal, because advantages have both signs and only the "
                "divergence in it is at least 0; it is no measure of progress either way",
                None, self.first, self.below, self.count,
            )  # fmt: skip


RULE = Rule(
    code="QST004",
    name="loss-is-negative",
    severity=Severity.NOTE,
    about="log",
    summary="the loss is negative",
    remedy="watch the reward instead",
    start=Signs,
    normal=True,
)
