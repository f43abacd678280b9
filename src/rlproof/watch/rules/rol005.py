"""ROL005: a prompt is answered alike in every step."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Severity
from rlproof.watch.dump import DumpStep
from rlproof.watch.facts import Facts
from rlproof.watch.rules.model import Alarm, Rule

_KEPT = 4096
_STEPS = 3


class Repeated:
    """Sets of completions of a prompt against those it got in an earlier step."""

    def __init__(self, facts: Facts) -> None:
        self.known: dict[int, int] = {}
        self.repeating = self.telling = 0
        self.first: float | None = None
        self.seen: tuple[int, int] = (0, 0)

    def see(self, step: DumpStep) -> None:
        """The completions of one step; the last few thousand prompts are kept."""
        again = same = 0
        for prompt, answers in step.answers.items():
            if prompt in self.known:
                again += 1
                same += self.known[prompt] == answers
            self.known[prompt] = answers
        while len(self.known) > _KEPT:
            self.known.pop(next(iter(self.known)))
        if again:
            self.telling += 1
            if same >= 0.9 * again:
                self.repeating += 1
                self.first = step.step if self.first is None else self.first
                self.seen = (same, again)

    def alarms(self) -> Iterator[Alarm]:
        """Where several steps repeat others, completion by completion."""
        if self.repeating >= _STEPS and self.repeating >= 0.9 * self.telling:
            same, again = self.seen
            text = f"prompts that came again, {again} in the last such step; answered as before"
            yield Alarm(
                "prompts that come again get the very completions they got before: the sampler "
                "starts from the same seed, or its weights stand still",
                Evidence(text, float(same), 0.0), self.first, self.repeating, self.telling,
            )  # fmt: skip


RULE = Rule(
    code="ROL005",
    name="repeated-rollouts",
    severity=Severity.WARNING,
    about="dump",
    summary="the same prompt gets the same completions in step after step",
    remedy="seed the sampler anew for every step and rank, and renew its weights",
    start=Repeated,
    needs=(),
)
