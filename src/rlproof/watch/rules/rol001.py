"""ROL001: the advantages of a dump are not what its rewards make them."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.watch.advantagefit import AdvantageFit, of_run
from rlproof.watch.dump import DumpStep
from rlproof.watch.facts import Facts
from rlproof.watch.rules.leak import leaks, named
from rlproof.watch.rules.model import Alarm, Rule


class Advantages:
    """The formulas that make the advantages of the rewards, prompt by prompt."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.fit = AdvantageFit()
        self.first: float | None = None

    def see(self, step: DumpStep) -> None:
        """The completions of one step."""
        self.first = step.step if self.first is None else self.first
        self.fit = of_run(step)

    def alarms(self) -> Iterator[Alarm]:
        """Batch statistics are a fault where groups are declared, else a recipe."""
        yield from leaks(self.fit, self.facts, self.first)

    def said(self) -> Iterator[str]:
        """Which formula it is."""
        yield from named(self.fit)


RULE = Rule(
    code="ROL001",
    name="dump-advantages-of-the-batch",
    severity=Severity.ERROR,
    about="dump",
    summary="advantages in a rollout dump leak across prompts, or have the wrong sign",
    remedy="take mean and std over each group of completions of one prompt",
    start=Advantages,
    needs=(),
    faults=("ADV001", "ADV015"),
)
