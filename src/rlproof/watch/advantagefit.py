"""Which formula makes the recorded advantages of the recorded rewards.

Shapes: N rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rlproof.faults.model import rounded
from rlproof.space.advantages import Advantage, advantages
from rlproof.watch.dump import DumpStep
from rlproof.watch.facts import OWN_GROUP
from rlproof.watch.seen import Array, StepSeen
from rlproof.watch.signal import MANY, Rows, Signal, signal, unequal

TOLERANCE = 2e-3
"""Residual of a fit: an eps of 1e-4 at std 0.3 changes 3e-4."""
_SCALES = ("population-std", "sample-std", "none", "batch-population-std", "batch-sample-std",
           "leave-one-out-std", "group-mean")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Made:
    """One formula, and the factor that it enters with at every step."""

    how: Advantage
    factor: float
    residual: float

    @property
    def of_batch(self) -> bool:
        """Whether a row's advantage depends on other groups."""
        how = self.how
        return how.baseline == "batch-mean" or how.scale.startswith("batch") or how.whiten != "none"


def formulas() -> Iterator[Advantage]:
    """Published ones, those of a group first, so that they win a tie."""
    for baseline in (*OWN_GROUP, "none", "batch-mean"):
        for scale in _SCALES:
            for eps in (1e-6, 1e-4) if scale != "none" else (1e-6,):
                yield Advantage(baseline, scale, eps)
    for baseline in ("group-mean", "none"):
        for whiten in ("sequence", "token"):
            yield Advantage(baseline, "none", whiten=whiten)


@dataclass(frozen=True, slots=True)
class Example:
    """One group: its rewards, its advantages, and what its own mean and std would make them."""

    step: float
    rewards: list[float]
    got: list[float]
    expected: list[float]


@dataclass
class AdvantageFit:
    """The state of the comparison over one run."""

    steps: int = 0
    """Steps that could tell: two groups at least, and rewards that differ in one."""
    equal: int = 0
    """Groups of equal rewards."""
    pushed: list[tuple[float, float, float]] = field(default_factory=list)
    """(step, reward, advantage) of equal rewards with an advantage: the first few."""
    example: Example | None = None
    """The group of the first such step that is farthest from its own statistics."""
    _formulas: list[Advantage] = field(default_factory=lambda: list(formulas()))
    _worst: NDArray[np.float64] | None = None
    _factors: NDArray[np.float64] | None = None

    def see(self, step: StepSeen) -> None:
        """One recorded step with rewards, groups and one advantage a row."""
        rewards, adv, ids = step.rewards, step.row_advantages, step.group_ids
        if rewards is not None and adv is not None and ids is not None and step.whole:
            found = signal(step.step, rewards, adv, ids, step.lengths)
            if found is not None:
                self.take(found)

    def take(self, found: Signal) -> None:
        """What one step tells."""
        if found.telling:
            self.steps += 1
            if found.rows is not None and (self.steps <= MANY or found.sampled):
                self._narrow(found.rows)
            if self.example is None and found.rows is not None:
                self.example = _example(found.step, found.rows)
        self.equal += found.equal
        if found.pushed is not None and len(self.pushed) < 3:
            self.pushed.append(found.pushed)

    def _narrow(self, rows: Rows) -> None:
        """Drop the formulas that do not give these advantages."""
        if self._worst is None or self._factors is None:
            self._worst = np.zeros(len(self._formulas))
            self._factors = np.full((len(self._formulas), 2), np.nan)
        live = unequal(rows.rewards, rows.groups)
        for k, how in enumerate(self._formulas):
            if self._worst[k] > TOLERANCE:
                continue
            factor, residual = _fit(how, rows, live)
            self._worst[k] = max(self._worst[k], residual)
            low, high = self._factors[k]
            self._factors[k] = np.fmin(low, factor), np.fmax(high, factor)

    def made(self) -> list[Made]:
        """The formulas that give every recorded advantage, up to one factor."""
        if self._worst is None or self._factors is None:
            return []
        found = []
        for k, how in enumerate(self._formulas):
            low, high = self._factors[k]
            if self._worst[k] <= TOLERANCE and high - low <= 2 * TOLERANCE * max(
                abs(low), abs(high)
            ):
                found.append(Made(how, float(low + high) / 2, float(self._worst[k])))
        return found


def _example(step: float, of: Rows) -> Example:
    own = advantages(of.rewards, of.groups, Advantage())
    far = np.zeros(int(of.groups.max()) + 1)
    np.maximum.at(far, of.groups, np.abs(own - of.advantages))
    rows = np.flatnonzero(of.groups == int(far.argmax()))[:8]
    columns = (of.rewards[rows], of.advantages[rows], own[rows])
    return Example(step, *([rounded(float(x), 4) for x in column] for column in columns))


def _fit(how: Advantage, rows: Rows, live: Array) -> tuple[float, float]:
    """Factor and residual of one formula.

    A formula of the group alone is held to groups with a signal: what becomes of the others is
    judged by itself.
    """
    adv = rows.advantages
    try:
        model = advantages(rows.rewards, rows.groups, how, rows.lengths)
    except ValueError:
        return np.nan, np.inf
    if not Made(how, 1.0, 0.0).of_batch:
        model, adv = model * live, adv * live
    norm = float(model @ model)
    if not np.isfinite(norm) or norm < 1e-18:
        return np.nan, np.inf
    factor = float(model @ adv) / norm
    size = max(float(np.linalg.norm(adv)), 1e-12)
    return factor, float(np.linalg.norm(factor * model - adv)) / size


def of_run(step: StepSeen | DumpStep) -> AdvantageFit:
    """The fit over all steps of this one's run or dump, this one included."""
    fit: AdvantageFit = step.shared.setdefault("advantages", AdvantageFit())
    if step.shared.get("advantages seen") is step:
        return fit
    step.shared["advantages seen"] = step
    if isinstance(step, StepSeen):
        fit.see(step)
    elif step.signal is not None:
        fit.take(step.signal)
    return fit
