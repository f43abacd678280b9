"""Comparing gradients, and differentiating what has no closed form.

Shapes: D parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rlproof.lab.policies import Floats


@dataclass(frozen=True, eq=False)
class Comparison:
    """How one vector differs from another, the one that is right."""

    relative_error: float
    """|x − y| / |y|."""
    cosine: float
    """⟨x, y⟩ / (|x|·|y|)."""
    scale: float
    """⟨x, y⟩ / ⟨y, y⟩: the factor that y is best multiplied by."""
    ratios: Floats
    """x/y for each coordinate; NaN where y is 0."""

    @property
    def degrees(self) -> float:
        """The angle between the two."""
        return float(np.degrees(np.arccos(np.clip(self.cosine, -1.0, 1.0))))


def compare(vector: ArrayLike, right: ArrayLike) -> Comparison:
    """How `vector` differs from the `right` one.

    Raises:
        ValueError: one of the two is 0, so that there is no direction to compare.
    """
    x, y = np.asarray(vector, float), np.asarray(right, float)
    if not (x.any() and y.any()):
        raise ValueError("a vector of zeros has no direction")
    inner, size = float(x @ y), float(np.linalg.norm(y))
    return Comparison(
        relative_error=float(np.linalg.norm(x - y)) / size,
        cosine=inner / (float(np.linalg.norm(x)) * size),
        scale=inner / size**2,
        ratios=np.divide(x, y, out=np.full_like(y, np.nan), where=y != 0),
    )


def jacobian(f: Callable[[Floats], ArrayLike], at: ArrayLike, h: float = 1e-5) -> Floats:
    """Central differences: column d is (f(x + h·e_d) − f(x − h·e_d)) / 2h.

    f gives a number or an array (…); the result is (…, D). The error is O(h²) + O(1e-16/h).
    """
    x = np.asarray(at, float).reshape(-1)
    steps = h * np.eye(x.size)
    columns = [(np.asarray(f(x + e), float) - np.asarray(f(x - e), float)) / (2 * h) for e in steps]
    return np.stack(columns, axis=-1)


def curl(jacobian_DD: Floats) -> float:
    """|J − Jᵀ| / |J + Jᵀ|: 0 for the gradient of a function, as its Jacobian is symmetric."""
    odd, even = jacobian_DD - jacobian_DD.T, jacobian_DD + jacobian_DD.T
    return float(np.linalg.norm(odd) / np.linalg.norm(even))
