"""LOG014: the gradient is exactly 0 although groups have a signal."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.row import Row
from rlproof.watch.rules.model import Alarm, Rule, evidence

_ROWS = 5


class Nothing:
    """The gradient norm of steps with unequal rewards."""

    def __init__(self, facts: Facts) -> None:
        self.first: float | None = None
        self.count = 0
        self.moves = False
        self.key = ""
        self.dead = 0.0

    def see(self, row: Row) -> None:
        """One row."""
        norm, dead = row.get("grad-norm"), row.exact("zero-variance-groups")
        if norm is None or dead is None or dead > 0.99:
            return
        if self.first is None:
            self.first, self.dead, self.key = row.step, dead, row.key("grad-norm")
        self.count += 1
        self.moves = self.moves or norm != 0

    def alarms(self) -> Iterator[Alarm]:
        """Where it was 0 at every such step."""
        if self.moves or self.count < _ROWS or self.first is None:
            return
        alive = f"{self.key}, where {1 - self.dead:.4g} of the groups have a signal"
        yield Alarm(
            "the gradient is exactly 0 at every step although rewards differ within groups: the "
            "loss does not reach the weights",
            evidence(self.first, alive, 0.0, "above 0"),
            self.first,
            self.count,
            self.count,
        )


RULE = Rule(
    code="LOG014",
    name="no-gradient",
    severity=Severity.ERROR,
    about="log",
    summary="the gradient norm is 0 at every step with unequal rewards",
    remedy="compute the new log-probs inside the differentiated function, from weights that train",
    start=Nothing,
    needs=("grad-norm", "zero-variance-groups"),
    faults=("LOP006", "LGP007", "SUR012"),
)
