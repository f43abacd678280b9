"""Probes of a loss. Each isolates one axis, off-policy, in value and gradient.

Shapes: N probe points, B rows, T slots. Log-probabilities in nats.

1. One row of one token with β = 0: ratio and surrogate, over a grid that leaves the clip range
   on both sides. What the loss gives for A = 0 at the same point is subtracted.
2. One token with A = 0 and β = 1: the divergence.
3. Rows of unequal length at ratio 1: the weight of every slot, padding included, and how the
   weights change when empty columns are appended.
4. One row of two tokens with unequal ratios: whether the ratio is per token or per sequence;
   and another with ratios so unequal that only their mean is within a usual clip range.
5. Everything at once, at random: the batch that an identified objective must reproduce.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlproof.bind.loss import LossImplementation
from rlproof.faults.seen import Answer, Batch
from rlproof.read.names import Slot

Array = NDArray[np.float64]
LENGTHS = (1, 3, 2)
WIDTH = 4
EXTRA = 2
EPS = 0.2
OTHER_EPS = 0.35
_OLD = (-1.0, -2.0)
_STEPS = (-1.6, -0.6, -0.33, -0.1, 0.1, 0.26, 0.52, 0.9)
FAR = ((-3.0, -3.0), (-3.0, 2.4), (-5.5, 5.0), (-0.5, -2.5))
"""(log π_old, step): far beyond any cap, for the right ratio (0.05 to 148) and for wrong ones."""
_AT = (-1.0, -0.5)  # log π_new and log π_ref where slots are weighed
_REF_STEPS = (-0.8, -0.3, 0.4, 1.1)


@dataclass(frozen=True, slots=True)
class Grid:
    """One token's term over N points: inputs, value and slope by log π_new."""

    new: Array
    old: Array
    ref: Array
    adv: Array
    value: Array
    slope: Array


@dataclass(frozen=True, slots=True)
class Weights:
    """∂L/∂log π_new of every slot (B, T) when all slots are alike, for one width."""

    mask: Array
    surrogate: Array
    divergence: Array
    at: tuple[float, float]
    """log π_new and log π_ref where the divergence was asked for."""


@dataclass(frozen=True, slots=True)
class LossObservation:
    """All answers of one loss."""

    surrogate: Grid
    drift: Grid
    """The same points with A = 0 and the reference at the new policy."""
    other_clip: Grid | None
    divergence: Grid | None
    other_beta: float | None
    """The ratio of the divergence term at β = 2 to that at β = 1, where there is a β."""
    unit: float
    """∂L/∂log π_new of a single on-policy token, per unit of its advantage."""
    weights: Weights
    wider: Weights
    pair: tuple[Batch, Answer]
    apart: tuple[Batch, Answer]
    full: tuple[Batch, Answer]
    mode: str
    against_ref: bool
    """Whether the ratio is to the reference, which then stands for the old policy."""


def one_token(new: float, old: float, adv: float, **more: Any) -> Batch:
    """A batch of one row with one real token; the reference equals the new policy."""
    return Batch([[new]], [[old]], [[new]], [adv], [[1]]).but(**more)


def observe(loss: LossImplementation) -> LossObservation:
    """Ask everything.

    Raises:
        ScriptError: the loss raised on a probe.
        UnbindableError: it hung or died.
    """
    has_beta = loss.target.has(Slot.BETA)
    has_ref = loss.target.has(Slot.REF)
    divergence = _divergence_grid(loss, 1.0) if has_ref else None
    doubled = _divergence_grid(loss, 2.0) if has_ref and has_beta else None
    push, unit = _unit(loss)
    masked = loss.masked
    against_ref = ratio_is_to_reference(loss)
    batches = [_pair(), _apart(), everything(masked)]
    if against_ref:
        batches = [batch.but(ref=batch.old) for batch in batches]
    pair, apart, full = zip(batches, loss.many(batches), strict=True)
    mode = loss.raw(one_token(-1.0, -1.2, 1.0)).get("mode", "")
    surrogate, drift = _surrogate_grids(loss, EPS, against_ref)
    return LossObservation(
        surrogate=surrogate,
        drift=drift,
        other_clip=_surrogate_grids(loss, OTHER_EPS, against_ref)[0] if _clips(loss) else None,
        divergence=divergence,
        other_beta=_growth(divergence, doubled),
        unit=unit,
        weights=_weights(loss, WIDTH, push, masked),
        wider=_weights(loss, WIDTH + EXTRA, push, masked),
        pair=pair,
        apart=apart,
        full=full,
        mode=mode,
        against_ref=against_ref,
    )


def _clips(loss: LossImplementation) -> bool:
    return any(loss.target.has(slot) for slot in (Slot.CLIP, Slot.CLIP_LOW, Slot.CLIP_HIGH))


def ratio_is_to_reference(loss: LossImplementation) -> bool:
    """Whether what the advantage adds to the loss depends on the reference.

    And not on the old policy, where the loss takes that as well.
    """
    if not loss.target.has(Slot.REF):
        return False
    at = one_token(-1.0, -1.0, 1.0)
    places = [at, at.but(ref=[[-1.1]]), at.but(old=[[-1.1]])]
    answers = loss.many([b for one in places for b in (one, one.but(advantages=[0.0]))])
    values = [answer.value for answer in answers]
    same, by_ref, by_old = (values[i] - values[i + 1] for i in (0, 2, 4))
    return abs(by_ref - same) > 1e-6 and abs(by_old - same) < 1e-9


def _surrogate_grids(loss: LossImplementation, eps: float, against_ref: bool) -> tuple[Grid, Grid]:
    """What the advantage adds to the loss, and what is there without one."""
    places = [*product(_OLD, _STEPS), *FAR]
    points = [(old, old + step, adv) for (old, step), adv in product(places, (1.0, -1.0))]
    # A = ±1 alone can't tell a cap times A from a cap divided by A
    points += [(old, old + step, adv) for (old, step), adv in product(FAR, (2.0, -2.0))]
    batches = [one_token(new, old, adv, low=eps, high=eps) for old, new, adv in points]
    if against_ref:
        batches = [batch.but(ref=batch.old) for batch in batches]
    with_adv = loss.many(batches)
    without = loss.many([batch.but(advantages=[0.0]) for batch in batches])
    new, old = (np.array([point[i] for point in points]) for i in (1, 0))
    value, slope = _of_one_token(without)
    drift = Grid(new, old, new, np.zeros(len(points)), value, slope)
    more, steeper = _of_one_token(with_adv)
    adv = np.array([point[2] for point in points])
    return Grid(new, old, new, adv, more - value, steeper - slope), drift


def _of_one_token(answers: list[Answer]) -> tuple[Array, Array]:
    """Values, and slopes of the only token."""
    values = np.array([answer.value for answer in answers])
    return values, np.array([answer.gradient[0][0] for answer in answers])


def _divergence_grid(loss: LossImplementation, beta: float) -> Grid:
    points = list(product((-1.0, -2.0), _REF_STEPS))
    batches = [
        Batch([[new]], [[new]], [[new + step]], [0.0], [[1]], beta=beta) for new, step in points
    ]
    answers = loss.many(batches)
    new, step = (np.array([point[i] for point in points]) for i in (0, 1))
    return Grid(new, new, new + step, np.zeros(len(points)), *_of_one_token(answers))


def _growth(single: Grid | None, doubled: Grid | None) -> float | None:
    if single is None or doubled is None:
        return None
    size = float(np.abs(single.value).max())
    return float(np.abs(doubled.value).max()) / size if size > 1e-12 else None


def _unit(loss: LossImplementation) -> tuple[float, float]:
    """An advantage whose token has a slope, and that slope per unit of advantage.

    A = 1 serves every published surrogate; some faulty ones are flat there and not at A = −1.
    """
    base = one_token(-1.0, -1.0, 0.0)
    up, flat, down = loss.many([base.but(advantages=[a]) for a in (1.0, 0.0, -1.0)])
    slopes = [answer.gradient[0][0] - flat.gradient[0][0] for answer in (up, down)]
    return (1.0, slopes[0]) if abs(slopes[0]) > 1e-9 else (-1.0, -slopes[1])


def _weights(loss: LossImplementation, width: int, push: float, masked: bool) -> Weights:
    mask = _mask(width, masked)
    lengths = [sum(row) for row in mask]
    rows = [[_AT[0]] * width for _ in lengths]
    flat = Batch(rows, rows, rows, [0.0] * len(lengths), mask)
    ref = [[_AT[1]] * width for _ in lengths]
    raised, still, pulled = (
        np.array(answer.gradient)
        for answer in loss.many(
            [flat.but(advantages=[push] * len(lengths)), flat, flat.but(ref=ref, beta=1.0)]
        )
    )
    return Weights(np.array(mask, dtype=float), (raised - still) / push, pulled, _AT)


def _pair() -> Batch:
    return Batch(
        new=[[-0.5, -1.5]],
        old=[[-1.0, -1.2]],
        ref=[[-0.5, -1.5]],
        advantages=[1.0],
        mask=[[1, 1]],
        low=0.9,
        high=4.0,
    )


def _apart() -> Batch:
    """ρ = e^1.9 and e^−1.7, whose geometric mean is e^0.1."""
    new = [[-0.4, -2.4]]
    return Batch(new=new, old=[[-2.3, -0.7]], ref=new, advantages=[1.0], mask=[[1, 1]])


def _mask(width: int, masked: bool) -> list[list[int]]:
    """Rows of unequal length; all slots are real where the loss takes no mask."""
    lengths = LENGTHS if masked else (width,) * len(LENGTHS)
    return [[int(t < length) for t in range(width)] for length in lengths]


def everything(masked: bool = True) -> Batch:
    """Three rows, off-policy, with padding: ratios from 0.3 to 2.5, never at a clip bound."""
    rng = random.Random(5)

    def rows(low: float, high: float) -> list[list[float]]:
        return [[round(rng.uniform(low, high), 3) for _ in range(WIDTH)] for _ in LENGTHS]

    old = rows(-2.5, -1.2)
    new = [[round(x + rng.uniform(-1.1, 0.9), 3) for x in row] for row in old]
    reference = rows(-2.5, -0.5)
    return Batch(new, old, reference, [1.0, -0.7, 0.4], _mask(WIDTH, masked), beta=0.3)
