"""ROL003: a completion without a reward is trained on."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.watch.dump import DumpStep
from rlproof.watch.facts import Facts
from rlproof.watch.rules.model import Alarm, Broken, Rule, evidence


class Unscored:
    """Rows whose reward is missing or not finite."""

    def __init__(self, facts: Facts) -> None:
        self.broken = Broken()

    def see(self, step: DumpStep) -> None:
        """The completions of one step."""
        trained = step.unscored_trained
        text = "completions without a finite reward whose advantage is not 0"
        self.broken.check(
            step.step, float(trained), lambda: evidence(step.step, text, float(trained), 0.0)
        )

    def alarms(self) -> Iterator[Alarm]:
        """Any such row."""
        if self.broken.seen:
            yield self.broken.alarm("completions that nobody scored are trained on")


RULE = Rule(
    code="ROL003",
    name="unscored-row-trained",
    severity=Severity.ERROR,
    about="dump",
    summary="a row has no finite reward and an advantage other than 0",
    remedy="leave rows without a reward out of their group, and out of the loss",
    start=Unscored,
    needs=(),
    faults=("ADV009",),
)
