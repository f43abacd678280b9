"""C9. The clip's room is relative: rare tokens get little of it, likely ones are never held above.

Statement:
    ρ ≤ 1 + ε_high means π_new ≤ π_old·(1 + ε_high). A token with π_old = .01 has its slope up to
    .012 at ε_high = .2 and up to .0128 at .28 (clip-higher). A token with

        π_old ≥ 1/(1 + ε_high)

    can never be clipped above. The lower clip acts from π_old·(1 − ε_low) down, and never if
    ε_low ≥ 1.

Conditions:
    The cap is on the slope, not on the probability: a token can pass it (C7).

Proof:
    π_new ≤ 1, so ρ ≤ 1/π_old, which is at most 1 + ε_high from that π_old on. And ρ > 0.

Refutes:
    "The clip treats all tokens alike": in absolute terms a token of .01 gains .002 until it is
    held, one of .5 gains .1, one of .9 is never held. "A wide ε_low only loosens the clip": from
    1 on it removes it, and falling tokens are pushed without end.

Sources:
    * Yu et al., "DAPO: An Open-Source LLM Reinforcement Learning System at Scale",
      arXiv:2503.14476 (abstract seen)
    * The bounds (derived here)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.claims.model import Number, number
from rlproof.lab.policies import Floats
from rlproof.space.surrogates import Clip, min_clip

OLD = (0.01, 0.5, 0.8, 0.9)


def slope(new: float, old: float, adv: float, clip: Clip) -> float:
    """∂s/∂log π of min-clip for one token."""
    ratio = np.array([new / old])
    return float(min_clip(ratio, ratio, np.log([new]), np.array([adv]), clip)[1][0])


def room(old: float, high: float) -> float:
    """The largest π_new that still has a slope for A = 1, by bisection; 1 if all have."""
    clip, low, top = Clip(0.2, high), old, 1.0
    if slope(top, old, 1.0, clip):
        return top
    for _ in range(60):
        middle = (low + top) / 2
        low, top = (middle, top) if slope(middle, old, 1.0, clip) else (low, middle)
    return low


def threshold(high: float) -> float:
    """The smallest π_old that is never clipped above, by bisection."""
    clip, low, top = Clip(0.2, high), 0.5, 1.0
    for _ in range(60):
        middle = (low + top) / 2
        low, top = (low, middle) if slope(1.0, middle, 1.0, clip) else (middle, top)
    return top


def falling(low: float) -> Floats:
    """Slopes for A = −1 at ρ = .5, .1, .001 with this ε_low."""
    return np.array([slope(0.5 * r, 0.5, -1.0, Clip(low, 0.2)) for r in (0.5, 0.1, 0.001)])


def numbers() -> tuple[Number, ...]:
    """How far a token is pushed up, from where on it is never clipped, and the lower clip."""
    plain, higher = ([room(old, high) for old in OLD] for high in (0.2, 0.28))
    return (
        number("cap for π_old = .01, .5, .8, .9 at ε_high = .2", plain, (0.012, 0.6, 0.96, 1.0),
               1e-9, "min(1, π_old·1.2)"),
        number("cap for π_old = .01, .5, .8, .9 at ε_high = .28", higher, (0.0128, 0.64, 1.0, 1.0),
               1e-9, "min(1, π_old·1.28)"),
        number("never clipped above from π_old, ε_high = .2 and .28",
               [threshold(high) for high in (0.2, 0.28)], (5 / 6, 0.78125), 1e-9, "1/(1 + ε_high)"),
        number("room above, said to be the same for all, ε_high = .2",
               [cap - old for cap, old in zip(plain, OLD, strict=True)], (0.002, 0.1, 0.16, 0.1),
               1e-9, "min(ε·π_old, 1 − π_old)"),
        number("slopes for A = −1 at ρ = .5, .1, .001, ε_low = .2", falling(0.2), (0, 0, 0), 1e-12,
               "C3"),
        number("slopes for A = −1 at ρ = .5, .1, .001, ε_low = .95", falling(0.95),
               (-0.5, -0.1, 0.0), 1e-12, "held below ρ = .05"),
        number("slopes for A = −1 at ρ = .5, .1, .001, ε_low = 1", falling(1.0),
               (-0.5, -0.1, -0.001), 1e-12, "never held"),
    )  # fmt: skip
