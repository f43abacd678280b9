"""LOG001: the advantages spread as if groups without a signal took part."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.row import Row
from rlproof.watch.rules.model import Alarm, Broken, Rule, evidence

_EXACT = 0.02
"""An eps of 1e-4 at a std of 0.1 takes 0.002 off the variance; rounding far less."""
_BESSEL = 1.15
"""A spread logged with n − 1 is larger by n/(n − 1): 1.143 for 8 completions."""
_ROWS = 5


class Spread:
    """adv_std² against 1 − (share of groups without a signal)."""

    def __init__(self, facts: Facts) -> None:
        baseline, scale = facts.advantage()
        self.declared = facts.of_group and scale in ("population-std", "sample-std")
        self.quiet = not self.declared and (baseline is not None or scale is not None)
        self.exactly = facts.scale == "population-std" and baseline == "group-mean"
        self.broken = Broken()
        self.whole = 0
        """Rows whose spread is 1 although a quarter of the groups has no signal."""
        self.telling = 0
        self.flat = 0
        """Rows off the identity whose spread is 1."""

    def see(self, row: Row) -> None:
        """One row."""
        std, dead = row.exact("advantage-std"), row.exact("zero-variance-groups")
        if std is None or dead is None or not 0 <= dead <= 1 or std != std:
            return
        got, expected = std * std, 1 - dead
        if dead > 0.25:
            self.telling += 1
            self.whole += abs(got - 1) < _EXACT
        off = abs(got - expected) if self.exactly else got - _BESSEL * expected
        self.flat += off > _EXACT and abs(got - 1) < _EXACT
        text = f"{row.key('advantage-std')}² where {dead:.4g} of the groups have equal rewards"
        self.broken.check(
            row.step,
            off - _EXACT,
            lambda: evidence(row.step, text, got, expected),
        )

    def alarms(self) -> Iterator[Alarm]:
        """An error where groups are declared and the spread is that of a normalised batch.

        Another spread may be one over tokens, which follows no law: a note.
        """
        if self.quiet or not self.broken.seen:
            return
        if self.declared and self.flat < self.broken.seen:
            yield self.broken.alarm(
                "the variance of the advantages is not 1 − (share of groups without a signal): it "
                "was taken over tokens, or they are not measured against their own groups",
                Severity.NOTE,
            )
        elif self.declared:
            yield self.broken.alarm(
                "the variance of the advantages is not 1 − (share of groups without a signal): "
                "they are not measured against their own groups"
            )
        elif self.telling >= _ROWS and self.whole == self.telling:
            yield self.broken.alarm(
                "the advantages have variance 1 whatever share of the groups has no signal: they "
                "are normalised over the batch, which is a recipe of its own, or a fault where "
                "groups are meant (`--fact scale=population-std`, or `--fact objective=grpo`)",
                Severity.NOTE,
            )


RULE = Rule(
    code="LOG001",
    name="spread-ignores-dead-groups",
    severity=Severity.ERROR,
    about="log",
    summary="adv_std² is not 1 − (share of groups without a signal)",
    remedy="take mean and std over each group of completions of one prompt",
    start=Spread,
    needs=("advantage-std", "zero-variance-groups"),
    faults=("ADV001", "ADV004"),
)
