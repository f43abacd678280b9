"""STP012: what the loss is computed from is not finite."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.rules.model import Alarm, Broken, Rule, evidence
from rlproof.watch.seen import StepSeen

_BY_SLOT = ("new_logps", "old_logps", "ref_logps", "grad")


class Finite:
    """Numbers of rows and of real tokens. Padding may hold anything."""

    def __init__(self, facts: Facts) -> None:
        self.broken = Broken()

    def see(self, step: StepSeen) -> None:
        """One recorded step."""
        found = [
            (name, int((~np.isfinite(values)).sum()))
            for name in ("rewards", "advantages")
            if (values := step.get(name)) is not None and values.ndim == 1
        ]
        if step.mask is not None:
            found += [
                (name, int((~np.isfinite(values[step.mask])).sum()))
                for name in _BY_SLOT
                if (values := step.get(name)) is not None
            ]
        if step.loss is not None:
            found.append(("loss", int(not np.isfinite(step.loss))))
        bad = [f"{name} ({count})" for name, count in found if count]
        self.broken.check(
            step.step,
            float(len(bad)),
            lambda: evidence(step.step, "numbers that are not finite", ", ".join(bad), "none"),
        )

    def alarms(self) -> Iterator[Alarm]:
        """The first one counts."""
        if self.broken.seen:
            yield self.broken.alarm("a number that the loss is computed from is not finite")


RULE = Rule(
    code="STP012",
    name="not-finite",
    severity=Severity.ERROR,
    about="step",
    summary="NaN or infinity among rewards, advantages, log-probs of real tokens, or in the loss",
    remedy="find where it enters: a reward that failed, 0/0, the log of 0",
    start=Finite,
    needs=(),
    faults=("ADV004", "ADV009", "MSK008", "LGP004"),
)
