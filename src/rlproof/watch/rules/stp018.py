"""STP018: prompts begin with two begin tokens."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.pack import NO_TOKEN
from rlproof.watch.rules.model import Alarm, Broken, Rule, evidence
from rlproof.watch.seen import StepSeen


class Begins:
    """The first two ids of every prompt, behind its padding."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.broken = Broken()

    def see(self, step: StepSeen) -> None:
        """One recorded step."""
        prompts, facts = step.ids("prompts"), self.facts.over(step.declared)
        if prompts is None or facts.bos is None or prompts.shape[1] < 2:
            return
        twice = np.array([_begins_twice(row, facts.bos, facts.pad) for row in prompts])
        text, share = "share of prompts that begin with two of them", float(twice.mean())
        self.broken.check(
            step.step,
            share if share > 0.5 else 0.0,
            lambda: evidence(step.step, text, share, 0.0),
        )

    def alarms(self) -> Iterator[Alarm]:
        """Where most prompts do."""
        if self.broken.seen:
            yield self.broken.alarm(
                "prompts begin with two begin tokens: the chat template writes one, and the "
                "tokenizer another"
            )


def _begins_twice(row: NDArray[np.int64], bos: int, pad: int | None) -> bool:
    """Whether a prompt does. Where padding is the begin token itself, it can't be told."""
    if pad == bos:
        return False
    real = [i for i in row.tolist() if i not in (NO_TOKEN, pad)]
    return real[:2] == [bos, bos]


RULE = Rule(
    code="STP018",
    name="begin-token-twice",
    severity=Severity.ERROR,
    about="step",
    summary="the prompts begin with two begin tokens",
    remedy="tokenise texts of a chat template with add_special_tokens=False",
    start=Begins,
    needs=("prompts",),
)
