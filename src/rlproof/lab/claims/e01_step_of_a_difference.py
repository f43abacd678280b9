"""E1. The error of a central difference is h²·|f‴|/6 from above and about 1e-16/h from below.

Statement:
    For smooth f and arithmetic of relative precision u ≈ 1.1e-16,

        |(f(x+h) − f(x−h))/2h − f′(x)| ≤ h²/6·max|f‴| + c·u/h,

    so the best h is of the order of u^(1/3), near 1e-5 for values of order 1, and the best error
    of the order of u^(2/3). A forward difference has h/2·|f″| and is best near u^(1/2).

Conditions:
    f is smooth within h. A clipped loss has kinks: a ratio that comes within h of 1 ± ε gives the
    average of two slopes, and no h law holds.

Proof:
    Taylor: f(x±h) = f ± h·f′ + h²/2·f″ ± h³/6·f‴(ξ). The difference leaves h³/3·f‴, over 2h.
    Each value is rounded by c·u at most, and two roundings over 2h give c·u/h. The sum is least
    where both are alike, h³ = 3·c·u/|f‴|.

Refutes:
    "The smaller h, the better the check": at h = 1e-12 the error is ten million times that of
    1e-5. "Differences confirm any gradient": they confirm the loss as written, away from kinks.

Sources:
    * Numerical differentiation, error bound u/h + h²·M/6, as in textbooks of numerical analysis
      (formula seen)
    * The constants for this loss (derived here)
"""

from __future__ import annotations

from math import log10

import numpy as np

from rlproof import tiny
from rlproof.lab.calculus import jacobian
from rlproof.lab.claims._e_shared import drawn, moved
from rlproof.lab.claims.model import Number, number
from rlproof.lab.policies import Floats

STEPS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)


def error(h: float) -> float:
    """Largest error of the central difference of the tiny trainer's loss."""
    at = moved()
    numeric = tiny.numeric_grad(drawn().loss, at, h)
    return float(np.abs(np.subtract(numeric, drawn().gradient(at))).max())


def numbers() -> tuple[Number, ...]:
    """Truncation, rounding, the best power of ten, a forward difference, and a kink."""
    third, second = largest_derivatives()
    best = min(STEPS, key=error)
    rounding = [error(h) * h for h in (1e-8, 1e-10, 1e-12)]
    return (
        number("error/h² at h = 1e-2, 1e-3", [error(h) / h**2 for h in (1e-2, 1e-3)],
               (third / 6,) * 2, 1e-6, "|f‴|/6 from second differences of the closed form"),
        number("the same, absolute", third / 6, 0.0032583, 1e-6, "complex step in plain Python"),
        number("error at h = 1e-4", error(1e-4), 3.2583e-11, 5e-12, "h²·|f‴|/6"),
        number("error·h at h = 1e-8, 1e-10, 1e-12", rounding, (0.0,) * 3, 2.3e-16,
               "roundings of a loss below 1: at most 2.2e-16"),
        number("best power of ten: log₁₀ h", log10(best), -5.0, 1e-9, "u^(1/3) = 4.8e-6"),
        number("error of a forward difference at h = 1e-4", forward(1e-4), 1e-4 * second / 2,
               1e-9, "h/2·|f″|"),
        number("slope at a kink: ρ = 1.2, A = 1, where it is 1.2 or 0", kink(1e-4), 0.6, 1e-4,
               "(1.2 + 0)/2"),
    )  # fmt: skip


def largest_derivatives(k: float = 1e-3) -> tuple[float, float]:
    """Largest |f‴| and |f″| along one coordinate."""

    def along(theta_D: Floats) -> Floats:
        return np.array(drawn().gradient(theta_D.reshape(2, 4).tolist())).ravel()

    at, steps = np.array(moved()).ravel(), k * np.eye(8)
    thirds = [
        (along(at + e)[d] - 2 * along(at)[d] + along(at - e)[d]) / k**2 for d, e in enumerate(steps)
    ]
    seconds = np.diag(jacobian(along, at))
    return float(np.abs(thirds).max()), float(np.abs(seconds).max())


def forward(h: float) -> float:
    """Largest error of the forward difference."""
    at, f = moved(), drawn().loss
    gaps = []
    for p, row in enumerate(drawn().gradient(at)):
        for v, right in enumerate(row):
            up = moved()
            up[p][v] += h
            gaps.append(abs((f(up) - f(at)) / h - right))
    return max(gaps)


def kink(h: float) -> float:
    """Central difference of min(ρ, clip ρ) along log π at ρ = 1.2."""

    def loss(log_ratio: float) -> float:
        return -tiny.grpo_loss([[log_ratio]], [[0.0]], [[log_ratio]], [1.0], [[1]], beta=0.0)

    edge = float(np.log(1.2))
    return (loss(edge + h) - loss(edge - h)) / (2 * h)
