"""STP025: the reference is sure of every token."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.rules.model import Alarm, Broken, Rule, evidence
from rlproof.watch.seen import StepSeen

_SHARE = 0.5
_DOUBT = 0.05
_LEAST = 8


class Absent:
    """Real tokens with a reference log-prob of 0, where the policy gives them less than 95 %."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.broken = Broken()

    def see(self, step: StepSeen) -> None:
        """One recorded step."""
        new, ref, mask = step.get("new_logps"), step.get("ref_logps"), step.mask
        if new is None or ref is None or mask is None:
            return
        if self.facts.over(step.declared).beta == 0:
            return  # what fills the place of a reference that nothing uses
        doubted = mask & (new < -_DOUBT)
        if doubted.sum() < _LEAST:
            return
        share = float((ref[doubted] == 0).mean())
        text = "share of real tokens with a reference log-prob of exactly 0 that the policy doubts"
        self.broken.check(step.step, share - _SHARE, lambda: evidence(step.step, text, share, 0.0))

    def alarms(self) -> Iterator[Alarm]:
        """Where most of them are."""
        if self.broken.seen:
            yield self.broken.alarm(
                "the reference log-probs are zeros: there is no reference, and the divergence "
                "pulls every sampled token towards certainty"
            )


RULE = Rule(
    code="STP025",
    name="reference-zeros",
    severity=Severity.ERROR,
    about="step",
    summary="the reference log-probs are exactly 0 on tokens that the policy doubts",
    remedy="score the completions with the reference, or leave the divergence out (beta = 0)",
    start=Absent,
    needs=("ref_logps", "new_logps"),
)
