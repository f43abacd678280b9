"""Known prompt weights w(p) of binary rewards, and which of them a measured one is.

The expected direction of one prompt is w(p)·∇p, so that it climbs F(p) with F′ = w. A weight is
known as a shape, of p and the group size, times a factor that depends on the group size alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import comb, sqrt

import numpy as np

from rlproof.defence.worlds import PROBABILITIES

TOLERANCE = 2e-3
"""Largest relative residual: an eps of 1e-4 beside a std of .33 stays below it."""


def constant(_size: int, _p: float) -> float:
    """1: the expected reward itself (claim A3)."""
    return 1.0


def by_std(size: int, p: float) -> float:
    """E√(K(G − K))/G/(p(1 − p)), K ~ Binomial(G, p): division by the std (claim A9)."""
    spread = sum(
        comb(size, k) * p**k * (1 - p) ** (size - k) * sqrt(k * (size - k)) / size
        for k in range(size + 1)
    )
    return spread / (p * (1 - p))


def by_mean(size: int, p: float) -> float:
    """(1 − (1 − p)^(G−1))/p: division by the mean of the group (MaxRL)."""
    return (1 - (1 - p) ** (size - 1)) / p


SHAPES: Mapping[str, Callable[[int, float], float]] = {
    "expected-reward": constant,
    "arcsine": by_std,
    "log": by_mean,
}
FACTORS: Mapping[str, Callable[[int], float]] = {
    "1": lambda _size: 1.0,
    "(G − 1)/G": lambda size: (size - 1) / size,
    "√((G − 1)/G)": lambda size: sqrt((size - 1) / size),
    "G/(G − 1)": lambda size: size / (size - 1),
    "G": lambda size: float(size),
    "G − 1": lambda size: float(size - 1),
    "√(G(G − 1))": lambda size: sqrt(size * (size - 1)),
    "1/G": lambda size: 1 / size,
}
LATEX = {
    "1": "",
    "(G − 1)/G": r"\frac{G-1}{G}\,",
    "√((G − 1)/G)": r"\sqrt{\frac{G-1}{G}}\,",
    "G/(G − 1)": r"\frac{G}{G-1}\,",
    "G": r"G\,",
    "G − 1": r"(G-1)\,",
    "√(G(G − 1))": r"\sqrt{G(G-1)}\,",
    "1/G": r"\frac{1}{G}\,",
}


@dataclass(frozen=True, slots=True)
class Shape:
    """The nearest known weight, its factor at each group size, and how near it is."""

    name: str
    scales: Mapping[int, float]
    residual: float

    @property
    def known(self) -> bool:
        """Whether the weight is this one."""
        return self.residual < TOLERANCE

    @property
    def factor(self) -> tuple[float, str] | None:
        """k and a name n with scale = k·n(G) at every size; None if none fits."""
        tries = []
        for name, value in FACTORS.items():
            ratios = [scale / value(size) for size, scale in self.scales.items()]
            middle = sum(ratios) / len(ratios)
            if max(abs(r - middle) for r in ratios) <= TOLERANCE * abs(middle):
                tries.append((abs(abs(middle) - 1) > TOLERANCE, name != "1", middle, name))
        if not tries:
            return None
        _, _, middle, name = min(tries, key=lambda one: one[:2])
        return _round(middle), name

    @property
    def factor_text(self) -> str | None:
        """The factor as a formula, such as (G − 1)/G or −0.2."""
        if not self.known or self.factor is None:
            return None
        k, name = self.factor
        size = "" if abs(k) == 1 and name != "1" else f"{abs(k):g}"
        named = f"({name})" if size and name == "G − 1" else name
        parts = [part for part in (size, named if name != "1" else "") if part]
        return ("−" if k < 0 else "") + "·".join(parts)

    def at(self, size: int, p: float) -> float | None:
        """The weight at any group size, by its formula; None where its factor has none."""
        if not self.known or self.factor is None:
            return None
        k, name = self.factor
        return k * FACTORS[name](size) * SHAPES[self.name](size, p)


def _round(x: float) -> float:
    """The whole number, or the reciprocal of one, that is meant; else four digits.

    An eps of 1e-4 takes 2e-4 off.
    """
    for inverse in (False, True):
        near = round(1 / x if inverse else x)
        meant = (1 / near if inverse else float(near)) if near else 0.0
        if meant and abs(x - meant) < TOLERANCE * abs(meant) / 4:
            return meant
    return float(f"{x:.4g}")


def shape_of(weights: Mapping[int, Sequence[float]]) -> Shape | None:
    """The known shape nearest to the weights measured at `PROBABILITIES`, by group size.

    None where all of them are 0.
    """
    fits = []
    for name, formula in SHAPES.items():
        scales, residuals = {}, []
        for size, row in weights.items():
            got = np.array(row)
            model = np.array([formula(size, p) for p in PROBABILITIES])
            if not np.abs(got).max() > 1e-9:
                return None
            # relative at each p, so that a few large weights do not hide the others
            ratios = got / model
            scales[size] = float(np.median(ratios))
            worst = float(np.abs(ratios - scales[size]).max())
            residuals.append(worst / max(abs(scales[size]), 1e-12))
        fits.append(Shape(name, scales, max(residuals)))
    return min(fits, key=lambda fit: fit.residual)
