"""STP022: a prompt is answered alike in every step, though not alike within its group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from rlproof.faults.model import Evidence, Severity, rounded
from rlproof.watch.facts import Facts
from rlproof.watch.pack import NO_TOKEN
from rlproof.watch.readers.values import digest
from rlproof.watch.rules.model import Alarm, Rule
from rlproof.watch.seen import StepSeen

_KEPT = 4096
_LENGTH = 8
_STEPS = 3
_SAME, _ALIKE = 0.5, 0.1

Answers = dict[int, Counter[int]]


class Repeated:
    """Completions of a prompt against those it got before, and against each other."""

    def __init__(self, facts: Facts) -> None:
        self.known: Answers = {}
        self.repeating = self.telling = 0
        self.first: float | None = None
        self.share = 0.0

    def see(self, step: StepSeen) -> None:
        """One recorded step, before its first update; the last few thousand prompts are kept."""
        answers = None if step.record.update else _answers(step)
        if not answers:
            return
        again = {p: a for p, a in answers.items() if p in self.known}
        rows = sum(a.total() for a in again.values())
        same = sum((a & self.known[p]).total() for p, a in again.items())
        alike = sum(a.total() - len(a) for a in again.values())
        self.known |= answers
        while len(self.known) > _KEPT:
            self.known.pop(next(iter(self.known)))
        if not rows or alike > _ALIKE * rows:
            return
        self.telling += 1
        if same >= _SAME * rows:
            self.repeating += 1
            self.share = same / rows
            self.first = step.step if self.first is None else self.first

    def alarms(self) -> Iterator[Alarm]:
        """A policy that is undecided within a group does not repeat itself by chance."""
        if self.repeating < _STEPS or self.repeating < 0.9 * self.telling:
            return
        text = "share of completions that their prompt got before; all differ within a group"
        yield Alarm(
            "prompts that come again get completions that they got before, token by token: the "
            "sampler starts from the same seed at every step",
            Evidence(text, rounded(self.share, 4), 0.0), self.first, self.repeating, self.telling,
        )  # fmt: skip


def _answers(step: StepSeen) -> Answers | None:
    """Digests of the longer completions of every prompt; None without ids of both."""
    prompts, tokens, mask = step.ids("prompts"), step.ids("tokens"), step.mask
    if prompts is None or tokens is None or mask is None or len(prompts) != len(tokens):
        return None
    found: Answers = {}
    padding = (NO_TOKEN, step.declared.pad)
    for prompt, row, real in zip(prompts.tolist(), tokens, mask, strict=True):
        if np.count_nonzero(real) >= _LENGTH:
            key = digest([i for i in prompt if i not in padding])
            found.setdefault(key, Counter())[digest(row[real].tolist())] += 1
    return found


RULE = Rule(
    code="STP022",
    name="seed-at-every-step",
    severity=Severity.ERROR,
    about="step",
    summary="prompts that come again get the completions they got before",
    remedy="seed the sampler once, not at every step, and otherwise on every rank",
    start=Repeated,
    needs=("prompts", "tokens"),
)
