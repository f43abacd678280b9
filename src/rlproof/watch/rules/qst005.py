"""QST005: most groups have no signal any more."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.row import Row
from rlproof.watch.rules.curves import Ends, usable
from rlproof.watch.rules.model import Alarm, Rule

_ROWS = 5


class Saturated:
    """The share of groups without a signal, and the reward, at both ends of the run."""

    def __init__(self, facts: Facts) -> None:
        self.dead, self.reward = Ends(_ROWS), Ends(_ROWS)
        self.count = 0

    def see(self, row: Row) -> None:
        """One row."""
        dead, reward = row.exact("zero-variance-groups"), row.get("reward-mean")
        if usable(dead) and usable(reward):
            self.count += 1
            self.dead.add(row.step, dead)
            self.reward.add(row.step, reward)

    def alarms(self) -> Iterator[Alarm]:
        """An answer, where the reward has risen with it."""
        if not self.dead.full:
            return
        before, after = self.dead.means()
        low, high = self.reward.means()
        if after > 0.5 and after > before and high > low:
            yield Alarm(
                f"{after:.0%} of the groups have no signal: normal, because the reward rose from "
                f"{low:.3g} to {high:.3g}, and a prompt that is always solved gives equal rewards "
                "(pᴳ + (1 − p)ᴳ of groups)",
                None, self.dead.steps[0], _ROWS, self.count,
            )  # fmt: skip


RULE = Rule(
    code="QST005",
    name="groups-fall-silent",
    severity=Severity.NOTE,
    about="log",
    summary="most groups have equal rewards after the reward has risen",
    remedy="draw harder prompts, or leave such groups out",
    start=Saturated,
    normal=True,
)
