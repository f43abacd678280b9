"""LOG016: groups are so small that most of them agree by chance."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.row import Row
from rlproof.watch.rules.curves import usable
from rlproof.watch.rules.model import Alarm, Rule, evidence

_ROWS = 10
_LARGER = 8
_NEAR = 0.15


class Agreeing:
    """Means over the run: the share of groups without a signal, and the reward."""

    def __init__(self, facts: Facts) -> None:
        self.size = facts.group_size
        self.count = 0
        self.dead = self.reward = 0.0
        self.first: float | None = None
        self.shares = True

    def see(self, row: Row) -> None:
        """One row."""
        dead, reward = row.exact("zero-variance-groups"), row.get("reward-mean")
        if usable(dead) and usable(reward):
            self.first = row.step if self.first is None else self.first
            self.count += 1
            self.dead += dead
            self.reward += reward
            self.shares = self.shares and 0 <= reward <= 1

    def alarms(self) -> Iterator[Alarm]:
        """Where chance explains it, and groups of eight would halve it."""
        if self.size is None or self.count < _ROWS or self.first is None or not self.shares:
            return
        if self.size >= _LARGER:
            return
        dead, p = self.dead / self.count, self.reward / self.count
        chance, less = _agree(p, self.size), _agree(p, _LARGER)
        if dead > 0.5 and abs(dead - chance) < _NEAR and less < dead / 2:
            yield Alarm(
                f"{dead:.0%} of the groups have no signal because they are small: of {self.size} "
                f"completions that succeed with p = {p:.2g} all agree with probability "
                f"pᴳ + (1 − p)ᴳ = {chance:.2g}; of {_LARGER} with {less:.2g}",
                evidence(
                    self.first,
                    f"share of groups without a signal, mean over {self.count} rows",
                    dead,
                    f"{less:.2g} in groups of {_LARGER}",
                ),
                self.first,
                self.count,
                self.count,
            )


def _agree(p: float, size: int) -> float:
    """The probability that all of a group succeed, or none."""
    return float(p**size + (1 - p) ** size)


RULE = Rule(
    code="LOG016",
    name="groups-too-small",
    severity=Severity.NOTE,
    about="log",
    summary="most groups have equal rewards, as chance gives groups of that size",
    remedy="sample more completions a prompt; fewer prompts a step pay for it",
    start=Agreeing,
    needs=("zero-variance-groups", "reward-mean"),
)
