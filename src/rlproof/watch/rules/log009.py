"""LOG009: a number that is none."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite, isnan

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.row import Row
from rlproof.watch.rules.model import Alarm, Broken, Rule, evidence

_ALWAYS = ("loss", "policy-loss", "kl-to-reference", "entropy", "advantage-std", "advantage-mean")


class Finite:
    """NaN and infinity in what training goes by.

    An infinite gradient norm is what loss scaling in half precision is there for, and passes.
    """

    def __init__(self, facts: Facts) -> None:
        self.broken = Broken()

    def see(self, row: Row) -> None:
        """One row."""
        known = [(row.key(m), v) for m in _ALWAYS if (v := row.get(m)) is not None]
        bad = [f"{key} {value}" for key, value in known if not isfinite(value)]
        norm = row.get("grad-norm")
        if norm is not None and isnan(norm):
            bad.append(f"{row.key('grad-norm')} {norm}")
        if known or norm is not None:
            self.broken.check(
                row.step,
                float(len(bad)),
                lambda: evidence(row.step, "logged", ", ".join(bad), "finite numbers"),
            )

    def alarms(self) -> Iterator[Alarm]:
        """The first one counts: everything after it follows."""
        if self.broken.seen:
            yield self.broken.alarm(
                "a number that training goes by is not finite; what it was computed from decides"
            )


RULE = Rule(
    code="LOG009",
    name="not-a-number",
    severity=Severity.ERROR,
    about="log",
    summary="the loss, its parts or the gradient are NaN or infinite",
    remedy="record that step (`rlproof.record`) and look for 0/0, log 0 and ∞·0 in masked slots",
    start=Finite,
    faults=("ADV004", "ADV009", "MSK008", "AGG005", "LGP004"),
)
