"""E2. Adding h, taking off 2h and adding h again does not restore a parameter to the bit.

Statement:
    With θ ← θ + h, θ ← θ − 2h, θ ← θ + h in floating point, each step rounds by at most half an
    ulp (of the largest value met), so that

        |drift| ≤ 1.5 ulp a call,

    which can add up call after call. If f raises in between, θ stays at θ + h.

Conditions:
    Binary floating point with rounding to the nearest. The size is harmless in double precision:
    3.3e-15 after 120 calls at θ = .2, and 0 at the other three values. Writing the saved value
    back is exact, also in `finally`.

Proof:
    x + h is rounded to a multiple of the ulp of the sum; what h loses there is not given back by
    the next two steps, which round in turn. Rounding errors depend on the digits of θ and h
    alone, so they may repeat with the same sign.

Refutes:
    "An in-place difference corrupts the training": by 1e-15, four orders below the error of the
    difference itself (E1). "It is exact, because h cancels": not in floating point.

Sources:
    * IEEE 754 rounding to nearest (from memory)
    * The drift of these values (derived here)
"""

from __future__ import annotations

import math
from collections.abc import Callable

from rlproof import tiny
from rlproof.lab.claims._e_shared import SAMPLED, Table, drawn
from rlproof.lab.claims.model import Number, number

H = 1e-4
Gradient = Callable[[Callable[[Table], float], Table, float], Table]


def by_arithmetic(f: Callable[[Table], float], theta: Table, h: float = H) -> Table:
    """A central difference that restores θ by adding h once more."""
    slopes = [[0.0] * len(row) for row in theta]
    for p, row in enumerate(theta):
        for v in range(len(row)):
            row[v] += h
            up = f(theta)
            row[v] -= 2 * h
            slopes[p][v] = (up - f(theta)) / (2 * h)
            row[v] += h
    return slopes


def numbers() -> tuple[Number, ...]:
    """Drift after 120 calls of both, and what is left where f raises."""
    ulps = [abs(d) / math.ulp(x) for d, x in zip(drift(by_arithmetic, 1), SAMPLED[0], strict=True)]
    slopes = [abs(a - b) for a, b in zip(slope_at(120), slope_at(0), strict=True)]
    return (
        number("drift of θ = (.2, 0, −.1, −.3) after 120 calls", drift(by_arithmetic, 120),
               (-120 * 2.0**-55, 0.0, 0.0, 0.0), 1e-20, "exact arithmetic, rounded by hand"),
        number("largest drift of one call, in ulps", max(ulps), 1.0, 1e-9, "bound: 1.5"),
        number("drift where the saved value is written back", drift(tiny.numeric_grad, 120),
               (0.0,) * 4, 1e-300, "exact"),
        number("what the drift does to the gradient", max(slopes), 0.0, 1e-14,
               "3.3e-15 times a second derivative below 1"),
        number("θ₀ after an exception, by arithmetic", after_exception(by_arithmetic), H, 1e-15,
               "+h"),
        number("θ₀ after an exception, written back", after_exception(tiny.numeric_grad), 0.0,
               1e-300, "exact"),
    )  # fmt: skip


def drift(gradient: Gradient, calls: int) -> list[float]:
    """Change of θ, for a function that costs nothing."""
    theta = [list(SAMPLED[0])]
    for _ in range(calls):
        gradient(lambda _: 0.0, theta, H)
    return [x - start for x, start in zip(theta[0], SAMPLED[0], strict=True)]


def slope_at(calls: int) -> list[float]:
    """The closed-form gradient of the tiny trainer's loss at θ after that many calls."""
    moved = [x + d for x, d in zip(SAMPLED[0], drift(by_arithmetic, calls), strict=True)]
    return drawn().gradient([moved, list(SAMPLED[1])])[0]


def after_exception(gradient: Gradient) -> float:
    """How far θ₀ is off once f has raised."""
    theta = [list(SAMPLED[0])]

    def fails(_: Table) -> float:
        raise ArithmeticError

    try:
        gradient(fails, theta, H)
    except ArithmeticError:
        return theta[0][0] - SAMPLED[0][0]
    raise AssertionError("f was never called")
