"""Least squares of y = a·S + b·D + c·H for all candidates at once, from sums of products.

Shapes: I surrogates, W weightings, J divergences, K bonuses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlproof.watch import candidates as space
from rlproof.watch.bonus import BONUSES
from rlproof.watch.seen import Array

_NONE = np.array([name == "none" for name in space.DIVERGENCES])[None, None]


class Sums:
    """Sums of products of S (I, W), D (J, W), H (K, W) and the observed y."""

    def __init__(self, terms: int) -> None:
        i, w, j = terms, len(space.WEIGHTINGS), len(space.DIVERGENCES)
        k = len(BONUSES)
        self.ss, self.sy = np.zeros((i, w)), np.zeros((i, w))
        self.dd, self.dy = np.zeros((j, w)), np.zeros((j, w))
        self.hh, self.hy = np.zeros((k, w)), np.zeros((k, w))
        self.sd, self.sh, self.dh = np.zeros((i, w, j)), np.zeros((i, w, k)), np.zeros((j, w, k))
        self.yy = self.size = 0.0
        self.equations = 0


@dataclass(frozen=True, slots=True)
class Solved:
    """The numbers of every candidate (I, W, J), and how far they may be off unnoticed."""

    a: Array
    b: Array
    c: Array
    left: Array
    """The sum of squares left; infinity where there is no such candidate."""
    certain: Array
    """Of b."""
    certain_bonus: Array
    """Of c."""


def _totals(parts: list[Sums], *names: str) -> list[Any]:
    """Sums of parts in units of their sizes; one that overflows explains nothing later on."""
    with np.errstate(all="ignore"):
        return [sum(getattr(part, name) / part.size for part in parts) for name in names]


def solve(parts: list[Sums], rounding: float) -> Solved:
    """Without a bonus."""
    ss, sy, dd, dy, sd, yy = _totals(parts, "ss", "sy", "dd", "dy", "sd", "yy")
    a, b, left = _two(ss, sy, dd, dy, sd, yy, ss < (10 * rounding) ** 2, rounding)
    with np.errstate(divide="ignore"):
        certain = 30 * rounding / np.sqrt(dd)
    return Solved(a, b, np.zeros_like(b), left, _spread(certain, left), np.zeros_like(b))


def solve_with_bonus(parts: list[Sums], rounding: float, k: int) -> Solved:
    """With the bonus of index k: what H explains is taken out of S, D and y first.

    Candidates are left out where H can't be told apart from the rest, where it contributes
    nothing, and where the sign of the surrogate would drown in rounding.
    """
    ss, sy, dd, dy, sd, hh, hy, sh, dh, yy = _totals(
        parts, "ss", "sy", "dd", "dy", "sd", "hh", "hy", "sh", "dh", "yy"
    )
    h, y, s, d = hh[k], hy[k], sh[:, :, k], dh[:, :, k]
    dim = (10 * rounding) ** 2
    with np.errstate(all="ignore"):
        ss_, sy_, yy_ = ss - s * s / h, sy - s * y / h, yy - y * y / h
        dd_, dy_ = dd - d * d / h, dy - d * y / h
        sd_ = sd - s[:, :, None] * d.T[None] / h[None, :, None]
        zero = ss < dim
        a, b, left = _two(ss_, sy_, dd_, dy_, sd_, yy_[None, :, None], zero, rounding)
        known = np.where(zero[:, :, None], 0.0, a)
        c = (y[None, :, None] - known * s[:, :, None] - b * d.T[None]) / h[None, :, None]
        det = ss_[:, :, None] * dd_.T[None] - sd_**2
        of_s = np.where(_NONE, ss_[:, :, None], det / dd_.T[None])
        of_d = np.where(zero[:, :, None], dd_.T[None], det / ss_[:, :, None])
        flat = ss[:, :, None] * dd.T[None] - sd**2
        of_h = h[None, :, None] * np.where(_NONE, ss_[:, :, None] / ss[:, :, None], det / flat)
        alone = dd_.T[None] / dd.T[None]  # of the divergence, where S is 0 throughout
        of_h = np.where(zero[:, :, None], h[None, :, None] * np.where(_NONE, 1.0, alone), of_h)
        weak = ~zero[:, :, None] & ~(known**2 * of_s > 9 * dim)
        mixed = ~_NONE & ~(dd_ > 1e-10 * dd).T[None]
        bad = weak | mixed | ~(c * c * h[None, :, None] > dim)
        certain, certain_bonus = 30 * rounding / np.sqrt(of_d), 30 * rounding / np.sqrt(of_h)
    return Solved(a, b, c, np.where(bad, np.inf, left), certain, certain_bonus)


def _spread(values: Array, like: Array) -> Array:
    return np.broadcast_to(values.T[None], like.shape)


def _two(
    ss: Array, sy: Array, dd: Array, dy: Array, sd: Array, yy: Array | float,
    zero: NDArray[np.bool_], rounding: float,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """a, b and the sum of squares left, (I, W, J); b is 0 where there is no divergence.

    Where S and D can't be told apart, or D is 0 throughout, the candidate is that without D.
    Where S is 0 at every step, as advantages that sum to 0 make it at ratio 1, a is NaN: nothing
    is known of it.
    """
    ss, sy, zero = ss[:, :, None], sy[:, :, None], zero[:, :, None]
    dd, dy = dd.T[None], dy.T[None]
    with np.errstate(all="ignore"):
        det = ss * dd - sd**2
        flat = ~_NONE & ~(det > 1e-10 * ss * dd)
        flat = flat & ~zero
        a = np.where(_NONE, sy / ss, (sy * dd - dy * sd) / det)
        b = np.where(_NONE, 0.0, (dy * ss - sy * sd) / det)
        a = np.where(zero, 0.0, a)
        b = np.where(zero & ~_NONE, dy / dd, b)
        idle = ~zero & (a * a * ss < (10 * rounding) ** 2)  # without the surrogate: no loss
        left = yy - a * sy - b * dy
        exact = yy - 2 * (a * sy + b * dy) + a**2 * ss + 2 * a * b * sd + b**2 * dd
    bad = flat | idle | ~np.isfinite(left) | ~np.isfinite(exact)
    return np.where(zero, np.nan, a), b, np.where(bad, np.inf, np.maximum(left, exact))
