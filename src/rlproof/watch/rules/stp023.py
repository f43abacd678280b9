"""STP023: the last token of completions that were cut off was replaced by an end token."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp

import numpy as np

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.rules.model import Alarm, Broken, Rule, evidence
from rlproof.watch.seen import StepSeen

_CHANCE = 1e-6
_UNLIKELY = -5.0
"""Nats a row: many rows that each may end there, at another temperature, are not unlikely."""


class Forced:
    """Rows as long as the limit, and how likely their last token was to be an end token."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.broken = Broken()

    def see(self, step: StepSeen) -> None:
        """One recorded step, before its first update."""
        facts, tokens, mask = self.facts.over(step.declared), step.ids("tokens"), step.mask
        logps = step.get("sampler_logps")
        logps = step.get("old_logps") if logps is None else logps
        logps = step.get("new_logps") if logps is None else logps
        if facts.eos is None or facts.longest is None or step.record.update:
            return
        if tokens is None or mask is None or logps is None or tokens.shape[1] < facts.longest:
            return
        full = mask[:, : facts.longest].all(1)
        last = facts.longest - 1
        if not full.any() or not np.isin(tokens[full, last], facts.eos).all():
            return
        if np.isin(tokens[full, :last], facts.eos).any():
            return  # ends that are followed by more are padding
        if logps[full, last].mean() > _UNLIKELY:
            return
        chance = float(logps[full, last].sum())
        text = (
            f"{int(full.sum())} completions of the full length, all with an end token in the last "
            "slot: probability that the policy chose those"
        )
        got = exp(max(chance, -700.0))
        self.broken.check(
            step.step, _CHANCE - got, lambda: evidence(step.step, text, got, f"above {_CHANCE:g}")
        )

    def alarms(self) -> Iterator[Alarm]:
        """Where the policy's own probabilities rule it out."""
        if self.broken.seen:
            yield self.broken.alarm(
                "completions that hit the limit end in an end token that the policy did not "
                "sample: it was written over the last token, and is trained on as if chosen"
            )


RULE = Rule(
    code="STP023",
    name="end-token-forced",
    severity=Severity.ERROR,
    about="step",
    summary="cut-off completions end in an end token that nobody sampled",
    remedy="leave cut-off completions as they are, or take the written token out of the mask",
    start=Forced,
    needs=("tokens", "new_logps"),
)
