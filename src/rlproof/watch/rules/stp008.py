"""STP008: log-probs of the sampler are exactly 0."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.rules.model import Alarm, Broken, Rule, evidence
from rlproof.watch.rules.pairs import engines
from rlproof.watch.seen import StepSeen

_SHARE = 0.01
_DOUBT = 0.05


class Zeros:
    """Real tokens with log-prob 0, where the trainer gives them less than 95 %."""

    def __init__(self, facts: Facts) -> None:
        self.broken = Broken()

    def see(self, step: StepSeen) -> None:
        """One recorded step."""
        pair = engines(step) if not step.record.update else None
        if pair is None:
            return
        trainer, sampler = pair
        known = np.isfinite(sampler)
        odd = known & (sampler == 0) & (trainer < -_DOUBT)
        share = float(odd.sum() / max(known.sum(), 1))
        text = "share of real tokens whose sampler log-prob is exactly 0 against a doubting trainer"
        off = share - _SHARE if known.sum() >= 50 else 0.0
        self.broken.check(step.step, off, lambda: evidence(step.step, text, share, 0.0))

    def alarms(self) -> Iterator[Alarm]:
        """Where there are more than a few."""
        if self.broken.seen:
            yield self.broken.alarm(
                "log-probs of the sampler are filled up with zeros on tokens that count: they were "
                "lost, padded, or belong to another tokenisation"
            )


RULE = Rule(
    code="STP008",
    name="sampler-zeros",
    severity=Severity.ERROR,
    about="step",
    summary="the sampler gives tokens a log-prob of exactly 0 that the trainer doubts",
    remedy="keep the ids and log-probs that the engine returned; pad only what the mask leaves out",
    start=Zeros,
    needs=("sampler_logps",),
    faults=(),
)
