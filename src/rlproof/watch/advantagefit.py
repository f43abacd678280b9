"""Which formula makes the recorded advantages of the recorded rewards.

Shapes: N rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlproof.faults.model import rounded
from rlproof.space.advantages import Advantage, advantages
from rlproof.watch.dump import DumpStep
from rlproof.watch.facts import OWN_GROUP
from rlproof.watch.seen import Array, StepSeen

MANY = 64
"""Steps that are all compared; of later ones every `SPARSE`-th: a run computes one thing."""
SPARSE = 16
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
            self.compare(step.step, rewards, adv, ids, step.lengths)

    def compare(
        self, step: float, rewards: Array, adv: Array, ids: Any, lengths: Array | None
    ) -> None:
        """The rows of one step (N,)."""
        if not len(rewards) or not (np.isfinite(rewards).all() and np.isfinite(adv).all()):
            return
        live = _unequal(rewards, ids)
        if live.any() and len(np.unique(ids)) > 1 and np.abs(adv).max() > 0:
            self.steps += 1
            if self.steps <= MANY or self.steps % SPARSE == 0:
                self._narrow(rewards, adv, ids, live, lengths)
            self.example = self.example or _example(step, rewards, adv, ids)
        self._push(step, rewards, adv, live)

    def _narrow(
        self, rewards: Array, adv: Array, ids: Any, live: Array, lengths: Array | None
    ) -> None:
        """Drop the formulas that do not give these advantages."""
        if self._worst is None or self._factors is None:
            self._worst = np.zeros(len(self._formulas))
            self._factors = np.full((len(self._formulas), 2), np.nan)
        for k, how in enumerate(self._formulas):
            if self._worst[k] > TOLERANCE:
                continue
            factor, residual = _fit(how, rewards, adv, ids, live, lengths)
            self._worst[k] = max(self._worst[k], residual)
            low, high = self._factors[k]
            self._factors[k] = np.fmin(low, factor), np.fmax(high, factor)

    def _push(self, step: float, rewards: Array, adv: Array, live: Array) -> None:
        """Rows of groups without a signal that are pushed all the same."""
        self.equal += int((~live.astype(bool)).any())
        dead = (live == 0) & (np.abs(adv) > 0.01)
        if dead.any() and len(self.pushed) < 3:
            i = int(np.flatnonzero(dead)[0])
            self.pushed.append((step, float(rewards[i]), float(adv[i])))

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


def _example(step: float, rewards: Array, adv: Array, ids: Any) -> Example:
    own = advantages(rewards, ids, Advantage())
    far = np.zeros(int(ids.max()) + 1)
    np.maximum.at(far, ids, np.abs(own - adv))
    rows = np.flatnonzero(ids == int(far.argmax()))[:8]
    columns = (rewards[rows], adv[rows], own[rows])
    return Example(step, *([rounded(float(x), 4) for x in column] for column in columns))


def _unequal(rewards: Array, ids: NDArray[np.int64]) -> Array:
    """1 on rows whose group has unequal rewards (N,)."""
    groups = int(ids.max()) + 1
    low, high = np.full(groups, np.inf), np.full(groups, -np.inf)
    np.minimum.at(low, ids, rewards)
    np.maximum.at(high, ids, rewards)
    return (high > low)[ids].astype(float)


def _fit(
    how: Advantage, rewards: Array, adv: Array, ids: Any, live: Array, lengths: Array | None
) -> tuple[float, float]:
    """Factor and residual of one formula.

    A formula of the group alone is held to groups with a signal: what becomes of the others is
    judged by itself.
    """
    try:
        model = advantages(rewards, ids, how, lengths)
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
    elif step.rewards is not None and step.advantages is not None:
        fit.compare(step.step, step.rewards, step.advantages, step.groups, None)
    return fit
