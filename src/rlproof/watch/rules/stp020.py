"""STP020: the loss is computed from other ids than were sampled."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.rules.model import Alarm, Broken, Rule, evidence
from rlproof.watch.seen import StepSeen


class Retokenised:
    """Ids of the loss against ids of the sampler, where the mask counts."""

    def __init__(self, facts: Facts) -> None:
        self.broken = Broken()

    def see(self, step: StepSeen) -> None:
        """One recorded step."""
        used, sampled, mask = step.ids("tokens"), step.ids("sampled_tokens"), step.mask
        if used is None or sampled is None or mask is None or not mask.any():
            return
        rows = ((used != sampled) & mask).any(1)
        share = float(rows.mean())
        text = f"completions of {len(rows)} whose ids are not those that were sampled"
        self.broken.check(
            step.step, share, lambda: evidence(step.step, text, float(rows.sum()), 0.0)
        )

    def alarms(self) -> Iterator[Alarm]:
        """One changed id is enough: all behind it are scored after another text."""
        if self.broken.seen:
            yield self.broken.alarm(
                "the ids of the loss are not the ids that were sampled: completions were decoded "
                "and tokenised again, and log-probs belong to tokens that nobody drew"
            )


RULE = Rule(
    code="STP020",
    name="other-ids-than-sampled",
    severity=Severity.ERROR,
    about="step",
    summary="completions are trained with ids other than those sampled",
    remedy="keep the ids of the sampler; tokenise only text that was added",
    start=Retokenised,
    needs=("sampled_tokens",),
)
