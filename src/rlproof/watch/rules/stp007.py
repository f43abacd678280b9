"""STP007: the log-probs of the sampler belong to neighbouring tokens."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Severity, rounded
from rlproof.watch.facts import Facts
from rlproof.watch.rules.model import Alarm, Rule
from rlproof.watch.rules.pairs import LEAST, Line, engines
from rlproof.watch.seen import StepSeen


class Shifted:
    """Correlation of the two at the same slot, and one slot apart."""

    def __init__(self, facts: Facts) -> None:
        self.lines = {lag: Line() for lag in (-1, 0, 1)}
        self.first: float | None = None
        self.steps = 0

    def see(self, step: StepSeen) -> None:
        """One recorded step."""
        pair = engines(step) if not step.record.update else None
        if pair is None:
            return
        trainer, sampler = pair
        self.first = step.step if self.first is None else self.first
        self.steps += 1
        self.lines[0].add(trainer.ravel(), sampler.ravel())
        self.lines[1].add(trainer[:, :-1].ravel(), sampler[:, 1:].ravel())
        self.lines[-1].add(trainer[:, 1:].ravel(), sampler[:, :-1].ravel())

    def alarms(self) -> Iterator[Alarm]:
        """Where the neighbour fits far better, and well."""
        here = self.lines[0]
        lag = max((-1, 1), key=lambda k: self.lines[k].correlation)
        there = self.lines[lag]
        if min(here.count, there.count) < LEAST:
            return
        if there.correlation > 0.9 and here.correlation < there.correlation - 0.3:
            text = f"correlation with the sampler's log-probs at the same slot, and {lag:+d}"
            found = Evidence(text, rounded(here.correlation, 4), rounded(there.correlation, 4))
            yield Alarm(
                "sampler and trainer score different tokens in one slot: the ratio compares "
                "neighbours", found, self.first, self.steps, self.steps,
            )  # fmt: skip


RULE = Rule(
    code="STP007",
    name="sampler-shifted",
    severity=Severity.ERROR,
    about="step",
    summary="the log-probs of sampler and trainer agree one slot apart",
    remedy="align both to the token that they score: logits of t − 1 for token t",
    start=Shifted,
    needs=("sampler_logps",),
    faults=("LGP003",),
)
