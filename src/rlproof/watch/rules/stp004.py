"""STP004: a group of equal rewards is pushed."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.watch.advantagefit import AdvantageFit, of_run
from rlproof.watch.facts import Facts
from rlproof.watch.rules.leak import pushes
from rlproof.watch.rules.model import Alarm, Rule
from rlproof.watch.seen import StepSeen


class Equal:
    """Groups without a signal, among groups that are measured by themselves."""

    def __init__(self, facts: Facts) -> None:
        self.fit = AdvantageFit()

    def see(self, step: StepSeen) -> None:
        """One recorded step."""
        self.fit = of_run(step)

    def alarms(self) -> Iterator[Alarm]:
        """Where the other groups follow a formula of the group."""
        yield from pushes(self.fit)


RULE = Rule(
    code="STP004",
    name="equal-rewards-pushed",
    severity=Severity.ERROR,
    about="step",
    summary="rewards of a group are all equal, and its advantages are not 0",
    remedy="divide by std + eps",
    start=Equal,
    needs=("rewards", "groups", "advantages"),
    faults=("ADV004", "ADV005", "ADV006"),
)
