"""The cases a repaired file must pass: its own value and gradient against its point of the space.

A loss is held to the value and the gradient that its point gives; advantages to the formula of
their point; token log-probs to log softmax. Log-probabilities in nats.
Shapes: B rows, T slots, P groups of G rewards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from math import exp, isclose, isfinite, log

import numpy as np

from rlproof.faults.seen import (
    AdvantagesSeen,
    Batch,
    LogProbsSeen,
    LossSeen,
    Point,
    Scoring,
    ScriptError,
    Seen,
)
from rlproof.judge.axes import values
from rlproof.space.advantages import BASELINES

_RELATIVE, _ABSOLUTE = 2e-3, 2e-5
"""float32 leaves 1e-6; a numeric gradient of plain Python 1e-7; bfloat16 is not judged here."""
_EQUAL = 1e-3
"""What equal rewards may give, as in the judgement: rounding over the eps."""
_PROBABILITIES = (0.11, 0.29, 0.53, 0.83)
"""No ratio of two of them is a round number: at 1.2 or 3 a clip has a kink, and no slope."""
_REWARDS: tuple[tuple[list[float], int], ...] = (
    ([1.0, 0.0, 0.5, 0.0, 0.25, 0.75, 1.0, 1.0], 4),
    ([0.0, 1.0, 1.0, 1.0], 2),
    ([1.0, 1.0, 0.0, 0.0], 2),
    ([0.2] * 8, 8),
    ([0.1, 0.7, 0.4, 0.4, 0.9, 0.3], 3),
    ([3.0, -1.0, 2.0, 2.0], 4),
)


@dataclass(slots=True)
class Cases:
    """How many cases were run and how many came out as they must."""

    total: int = 0
    passed: int = 0

    def add(self, passes: bool) -> None:
        """Count one case."""
        self.total += 1
        self.passed += passes

    def run(self, seen: Seen) -> None:
        """All cases of a file."""
        for loss in seen.losses:
            _loss(loss, self.add)
        for function in seen.advantages:
            _advantages(function, self.add)
        for scored in seen.log_probs:
            _log_probs(scored, self.add)
        for _, facts in seen.other:
            if told := facts.get("lengths"):
                self.add(told[0] == "masked" or facts["unread"] is None)
            if pair := facts.get("bonus"):
                self.add(isclose(*pair, rel_tol=0.02, abs_tol=1e-3))


def _loss(loss: LossSeen, add: Callable[[bool], None]) -> None:
    if not {"surrogate", "ratio", "aggregation", "surrogate_weight"} <= set(loss.point):
        return  # an objective that is not known predicts nothing
    if loss.point.get("aggregation") == "per-token" or float(loss.facts.get("residual", 0)) > 1e-3:
        return
    told = bool({"mask", "lengths"} & loss.slots)
    for batch in batches("divergence coefficient" in loss.slots, told):
        try:
            meant = loss.predict(loss.point, batch)
        except (KeyError, ValueError):
            return
        try:
            got = loss.run(batch)
        except ScriptError:
            add(False)
            continue
        pairs = [(got.value, meant.value)]
        for one, other in zip(got.gradient, meant.gradient, strict=True):
            pairs += zip(one, other, strict=True)
        add(all(near(x, y) for x, y in pairs))


def near(got: float, meant: float) -> bool:
    """Equal but for rounding."""
    return isfinite(got) and isclose(got, meant, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE)


def batches(has_beta: bool, has_mask: bool = True) -> Iterator[Batch]:
    """One token inside and outside the clip range, then unequal rows with padding, off-policy.

    A loss that is told of no padding is given none.
    """
    for new, old, adv in product(_PROBABILITIES, _PROBABILITIES, (1.0, -1.0)):
        row = [[log(new)]]
        yield Batch(row, [[log(old)]], row, [adv], [[1]])
    if has_beta:
        for new, ref in product((0.23, 0.61), _PROBABILITIES):
            row = [[log(new)]]
            yield Batch(row, row, [[log(ref)]], [0.0], [[1]], beta=1.0)
    new_BT = [[-1.0, -0.7, -2.0, -0.4], [-0.9, -1.6, -0.2, -1.1], [-0.3, -2.2, -0.8, -1.5]]
    old_BT = [[-1.5, -0.6, -2.1, -1.4], [-0.8, -1.1, -0.9, -0.1], [-0.9, -2.1, -0.7, -1.0]]
    ref_BT = [[-1.2, -0.9, -1.7, -0.4], [-0.4, -1.9, -0.2, -1.6], [-0.6, -1.7, -1.3, -0.5]]
    for lengths in ((4, 4, 4), (1, 3, 2), (4, 1, 1), (2, 2, 4))[: 4 if has_mask else 1]:
        mask = [[int(t < n) for t in range(4)] for n in lengths]
        for beta in (0.0, 0.5):
            yield Batch(new_BT, old_BT, ref_BT, [1.0, -0.5, 2.0], mask, beta=beta)
            yield Batch(new_BT, new_BT, ref_BT, [-1.0, 0.5, 0.25], mask, beta=beta)


def _advantages(function: AdvantagesSeen, add: Callable[[bool], None]) -> None:
    point = function.point
    if not {"baseline", "scale"} <= set(point) or str(point["scale"]) not in values("scale"):
        return
    rounds = bool(function.facts.get("rounded_failures"))
    for rewards, size in _REWARDS:
        if rounds and len(set(rewards)) == 1:
            continue  # the eps is too small for this dtype, which is said on its own
        meant = predicted(point, rewards, len(rewards) if function.facts["one_group"] else size)
        try:
            got = function.run(list(rewards), size)
        except ScriptError:
            add(False)
            continue
        close = near if any(meant) else _is_small  # equal rewards leave the rounding of their mean
        add(len(got) == len(meant) and all(map(close, got, meant)))


def _is_small(got: float, _: float) -> bool:
    return isfinite(got) and abs(got) < _EQUAL


def predicted(point: Point, rewards: list[float], size: int) -> list[float]:
    """(r − b) / (σ + eps), by the coordinates of a point."""
    grid = np.array(rewards).reshape(-1, size)
    centred = grid - BASELINES[str(point["baseline"])](grid)
    scale = values("scale")[str(point["scale"])](grid)
    eps = float(point.get("eps", 0.0))
    if point.get("eps_place") == "sqrt(var + eps)":
        scale = np.sqrt(scale**2 + eps)
    elif point.get("eps_place") == "sqrt(max(var, eps))":
        scale = np.sqrt(np.maximum(scale**2, eps))
    elif point["scale"] != "none":
        scale = scale + eps
    factor = float(point.get("factor", 1.0)) * (-1 if point.get("sign") == "inverted" else 1)
    with np.errstate(all="ignore"):
        ratio = np.where(np.abs(centred) < 1e-12, 0.0, centred / scale)
    return [float(x) for x in (factor * ratio).ravel()]


def _log_probs(function: LogProbsSeen, add: Callable[[bool], None]) -> None:
    if dict(function.point) != {"log_probs": "log-softmax"}:
        return
    for first, token in product((-2.0, 0.0, 1.5, 30.0), (0, 1)):
        line = function.line(first)
        top = max(line)
        meant = line[token] - top - log(sum(exp(x - top) for x in line))
        try:
            rows = function.run(Scoring([[line]], [[token]]))
        except ScriptError:
            add(False)
            continue
        add(near(float(rows[0][0]), meant))
