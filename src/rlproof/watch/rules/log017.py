"""LOG017: the divergence from the reference is beyond anything that a distribution has."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.row import Row
from rlproof.watch.rules.curves import usable
from rlproof.watch.rules.model import Alarm, Broken, Rule, evidence

_MOST = 1e4
"""Nats. A log-prob of a sampled token is seldom below −50; summed over 200 tokens that is this."""


class Exploded:
    """The logged estimate of the divergence."""

    def __init__(self, facts: Facts) -> None:
        self.broken = Broken()

    def see(self, row: Row) -> None:
        """One row."""
        value = row.get("kl-to-reference")
        if usable(value):
            text = row.key("kl-to-reference")
            self.broken.check(
                row.step,
                value - _MOST,
                lambda: evidence(row.step, text, value, f"below {_MOST:g} nats"),
            )

    def alarms(self) -> Iterator[Alarm]:
        """Where it ever was."""
        if self.broken.seen:
            yield self.broken.alarm(
                "no two policies are that far apart: exp(ref − new) of a few tokens is the whole "
                "number. Look at the tokens with the largest |ref − new|: scored at another "
                "position, in another precision, or past the end of the row"
            )


RULE = Rule(
    code="LOG017",
    name="divergence-explodes",
    severity=Severity.WARNING,
    about="log",
    summary="the logged divergence is thousands of nats: a few tokens dominate it",
    remedy="compare the two forward passes token by token; k2, or a clamped gap, for a bounded one",
    start=Exploded,
    needs=("kl-to-reference",),
    faults=("KLD008", "LGP003", "MSK013"),
)
