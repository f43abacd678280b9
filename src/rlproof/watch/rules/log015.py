"""LOG015: the reward has fallen and stays down."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from statistics import fmean

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.row import Row
from rlproof.watch.rules.curves import error_of_mean, usable
from rlproof.watch.rules.model import Alarm, Rule, evidence

_ROWS = 10
_ERRORS = 6.0


class Collapse:
    """The mean reward of ten steps: now, at its best, and at the start."""

    def __init__(self, facts: Facts) -> None:
        self.window: deque[tuple[float, float]] = deque(maxlen=_ROWS)
        self.start: list[float] = []
        self.best: tuple[float, float, float] | None = None  # mean, its error, step
        self.key = ""
        self.count = 0

    def see(self, row: Row) -> None:
        """One row."""
        reward = row.get("reward-mean")
        if not usable(reward):
            return
        self.key, self.count = row.key("reward-mean"), self.count + 1
        self.window.append((row.step, reward))
        if len(self.window) < _ROWS:
            return
        values = [value for _, value in self.window]
        self.start = self.start or values
        if self.best is None or fmean(values) > self.best[0]:
            self.best = (fmean(values), error_of_mean(values), row.step)

    def alarms(self) -> Iterator[Alarm]:
        """Where half of what was ever gained is lost again, or half of what was there at first."""
        if self.best is None or self.count < 2 * _ROWS:
            return
        values = [value for _, value in self.window]
        top, error, step = self.best
        now, lost = fmean(values), top - fmean(values)
        spread = (error**2 + error_of_mean(values) ** 2) ** 0.5
        gained = top - fmean(self.start)
        enough = 0.5 * (gained if gained > _ERRORS * spread else abs(top))
        if lost > max(_ERRORS * spread, enough) and lost > 1e-9:
            text = f"mean {self.key} of the last {_ROWS} steps; best, up to step {step:g}"
            yield Alarm(
                "the reward has fallen from where it was, and far beyond its noise",
                evidence(self.window[0][0], text, now, top),
                self.window[0][0],
                _ROWS,
                self.count,
            )


RULE = Rule(
    code="LOG015",
    name="reward-collapsed",
    severity=Severity.WARNING,
    about="log",
    summary="the reward has lost half of what it gained, or of what it began with",
    remedy="record a step (`rlproof.record`) and check sign, ratio and divergence of the loss",
    start=Collapse,
    needs=("reward-mean",),
    faults=("SUR005", "SUR001", "LOP007", "ADV015"),
)
