"""QST006: the entropy falls."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.row import Row
from rlproof.watch.rules.curves import Ends, usable
from rlproof.watch.rules.model import Alarm, Rule

_ROWS = 5


class Falling:
    """Entropy and reward at both ends of the run."""

    def __init__(self, facts: Facts) -> None:
        self.entropy, self.reward = Ends(_ROWS), Ends(_ROWS)
        self.count = 0

    def see(self, row: Row) -> None:
        """One row."""
        entropy, reward = row.get("entropy"), row.get("reward-mean")
        if usable(entropy) and usable(reward):
            self.count += 1
            self.entropy.add(row.step, entropy)
            self.reward.add(row.step, reward)

    def alarms(self) -> Iterator[Alarm]:
        """An answer, where the reward rose."""
        if not self.entropy.full:
            return
        before, after = self.entropy.means()
        low, high = self.reward.means()
        if after < before / 2 and high > low:
            yield Alarm(
                f"the entropy fell from {before:.3g} to {after:.3g} nats while the reward rose: "
                "normal, because a policy that has found what is rewarded draws little else; it "
                "is trouble only where the reward stands still and exploration is needed",
                None, self.entropy.start, self.count, self.count,
            )  # fmt: skip


RULE = Rule(
    code="QST006",
    name="entropy-falls",
    severity=Severity.NOTE,
    about="log",
    summary="the entropy falls while the reward rises",
    remedy="look at completions; raise the upper clip bound, or add an entropy bonus",
    start=Falling,
    normal=True,
)
