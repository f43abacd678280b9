"""STP024: a batch is used for more updates than declared."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.rules.model import Alarm, Broken, Rule, evidence
from rlproof.watch.seen import StepSeen


class Updates:
    """The number of every recorded update."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.broken = Broken()

    def see(self, step: StepSeen) -> None:
        """One recorded update."""
        declared, number = self.facts.over(step.declared).updates, step.record.update
        if declared is None or number is None:
            return
        text = "updates of the weights from one batch, at least"
        self.broken.check(
            step.step,
            float(number + 1 - declared),
            lambda: evidence(step.step, text, float(number + 1), float(declared)),
        )

    def alarms(self) -> Iterator[Alarm]:
        """Where a record says that more updates came before than there should be in all."""
        if self.broken.seen:
            yield self.broken.alarm(
                "batches are used for more updates than declared: more mini-batches than planned "
                "are cut from a rollout, so the policy moves further from the one that sampled"
            )


RULE = Rule(
    code="STP024",
    name="more-updates-than-declared",
    severity=Severity.WARNING,
    about="step",
    summary="a rollout is used for more updates than declared",
    remedy="cut a fixed number of mini-batches from a rollout, whatever its number of rows",
    start=Updates,
    needs=("update",),
)
