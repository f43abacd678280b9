"""ROL004: all completions of a group are the same."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Severity
from rlproof.watch.dump import DumpStep
from rlproof.watch.facts import Facts
from rlproof.watch.rules.model import Alarm, Rule

_STEPS = 3


class Same:
    """Groups of several whose completions are one text, from the first step on."""

    def __init__(self, facts: Facts) -> None:
        self.steps = 0
        self.differ = False
        self.first: float | None = None

    def see(self, step: DumpStep) -> None:
        """The completions of one step. Short answers may well agree."""
        same, groups = step.identical
        if not groups:
            return
        self.first = step.step if self.first is None else self.first
        self.steps += 1
        self.differ = self.differ or same < 0.9 * groups

    def alarms(self) -> Iterator[Alarm]:
        """Only where it never was otherwise."""
        if self.differ or self.steps < _STEPS:
            return
        yield Alarm(
            "the completions of a prompt are all the same: there is nothing to compare in a group",
            Evidence("distinct completions in a group, since the first step", 1.0, "more than 1"),
            self.first, self.steps, self.steps,
        )  # fmt: skip


RULE = Rule(
    code="ROL004",
    name="same-completions",
    severity=Severity.WARNING,
    about="dump",
    summary="the completions of each prompt are identical since the first step",
    remedy="sample with temperature above 0 and another seed for every completion and rank",
    start=Same,
    needs=(),
)
