"""STP013: the mask holds other values than 0 and 1."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.rules.model import Alarm, Broken, Rule, evidence
from rlproof.watch.seen import StepSeen


class Mask:
    """The values of the mask as it was given."""

    def __init__(self, facts: Facts) -> None:
        self.broken = Broken()

    def see(self, step: StepSeen) -> None:
        """One recorded step."""
        if step.marks is None:
            return
        odd = step.marks[(step.marks != 0) & (step.marks != 1)]
        value = float(odd[0]) if len(odd) else 0.0
        self.broken.check(
            step.step,
            float(len(odd)),
            lambda: evidence(step.step, "a value of the mask", value, "0 or 1"),
        )

    def alarms(self) -> Iterator[Alarm]:
        """Any such value."""
        if self.broken.seen:
            yield self.broken.alarm(
                "the mask holds other values than 0 and 1: another tensor took its place"
            )


RULE = Rule(
    code="STP013",
    name="mask-of-other-values",
    severity=Severity.ERROR,
    about="step",
    summary="the recorded mask has values other than 0 and 1",
    remedy="pass the mask; weights belong into the aggregation",
    start=Mask,
    needs=("mask",),
    faults=("MSK011",),
)
