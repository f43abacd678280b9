"""STP019: the end token that the policy chose is not in the loss."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.rules.model import Alarm, Broken, Rule, evidence
from rlproof.watch.seen import StepSeen

_ALL = 0.9


class Ends:
    """The slot of the first end token behind the last token that counts."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.broken = Broken()

    def see(self, step: StepSeen) -> None:
        """One recorded step."""
        tokens, mask, facts = step.ids("tokens"), step.mask, self.facts.over(step.declared)
        if tokens is None or mask is None or facts.eos is None:
            return
        chosen = np.isin(tokens, facts.eos)
        rows = chosen.any(1) & mask.any(1)  # a row that is left out as a whole is so on purpose
        if not rows.any():
            return
        first = chosen[rows].argmax(1)
        counted = mask[rows][np.arange(len(first)), first]
        share, text = float(counted.mean()), "share of chosen end tokens that the mask counts"
        left_out = share < 1 - _ALL
        self.broken.check(step.step, float(left_out), lambda: evidence(step.step, text, share, 1.0))

    def alarms(self) -> Iterator[Alarm]:
        """Where it is so at every step that could show it."""
        if self.broken.seen and self.broken.seen == self.broken.of:
            yield self.broken.alarm(
                "the mask ends before the end token: the decision to stop gets no gradient"
            )


RULE = Rule(
    code="STP019",
    name="end-token-not-trained",
    severity=Severity.ERROR,
    about="step",
    summary="the mask leaves out the end token that the policy chose",
    remedy="count tokens up to the first end token, that one included",
    start=Ends,
    needs=("tokens",),
    faults=("MSK004",),
)
