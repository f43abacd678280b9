"""STP003: the advantages are not what rewards and groups make them."""

from __future__ import annotations

from rlproof.faults.model import Severity
from rlproof.watch.dump import DumpStep
from rlproof.watch.rules.leak import Advantages
from rlproof.watch.rules.model import Rule
from rlproof.watch.seen import StepSeen


class Declaring(Advantages):
    """A recorded step may declare facts of its own."""

    def see(self, step: StepSeen | DumpStep) -> None:
        """One recorded step."""
        if isinstance(step, StepSeen):
            self.facts = self.facts.over(step.declared)
        super().see(step)


RULE = Rule(
    code="STP003",
    name="advantages-of-the-batch",
    severity=Severity.ERROR,
    about="step",
    summary="advantages leak across groups, or have the wrong sign",
    remedy="take mean and std over each group of completions of one prompt",
    start=Declaring,
    needs=("rewards", "groups", "advantages"),
    faults=("ADV001", "ADV015"),
)
