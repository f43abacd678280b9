"""LOG006: an entropy that no distribution over the vocabulary has."""

from __future__ import annotations

from collections.abc import Iterator
from math import log

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.row import Row
from rlproof.watch.rules.model import Alarm, Broken, Rule, evidence

_ROUNDING = 1e-4


class Possible:
    """0 ≤ H ≤ log V."""

    def __init__(self, facts: Facts) -> None:
        self.top = log(facts.vocabulary) if facts.vocabulary else None
        self.broken = Broken()

    def see(self, row: Row) -> None:
        """One row."""
        value, key = row.get("entropy"), row.key("entropy")
        if value is None:
            return
        off, meant = -value, "0 or more"
        exact = row.exact("entropy")
        if self.top is not None and exact is not None and exact - self.top > off:
            off, meant = exact - self.top, f"at most log V = {self.top:.6g}"
        self.broken.check(
            row.step, off - _ROUNDING, lambda: evidence(row.step, f"{key} in nats", value, meant)
        )

    def alarms(self) -> Iterator[Alarm]:
        """The upper bound needs the size of the vocabulary."""
        if self.broken.seen:
            yield self.broken.alarm(
                "no distribution has this entropy: it is computed from something else than "
                "log-probs, from padding, or in another unit"
            )


RULE = Rule(
    code="LOG006",
    name="impossible-entropy",
    severity=Severity.ERROR,
    about="log",
    summary="the entropy is below 0 or above log V",
    remedy="take −Σ p log p over the vocabulary, then the mean over real tokens",
    start=Possible,
    needs=("entropy",),
    faults=("MET002", "LGP004"),
)
