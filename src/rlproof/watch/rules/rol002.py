"""ROL002: equal rewards of a prompt are pushed."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.watch.advantagefit import AdvantageFit, of_run
from rlproof.watch.dump import DumpStep
from rlproof.watch.facts import Facts
from rlproof.watch.rules.leak import pushes
from rlproof.watch.rules.model import Alarm, Rule


class Equal:
    """Prompts without a signal, among prompts that are measured by themselves."""

    def __init__(self, facts: Facts) -> None:
        self.fit = AdvantageFit()

    def see(self, step: DumpStep) -> None:
        """The completions of one step."""
        self.fit = of_run(step)

    def alarms(self) -> Iterator[Alarm]:
        """Where the other groups follow a formula of the group."""
        yield from pushes(self.fit)


RULE = Rule(
    code="ROL002",
    name="dump-equal-rewards-pushed",
    severity=Severity.ERROR,
    about="dump",
    summary="rewards of a prompt are all equal in a dump, and its advantages are not 0",
    remedy="divide by std + eps",
    start=Equal,
    needs=(),
    faults=("ADV004", "ADV005", "ADV006"),
)
