"""C3. The minimum removes the gradient only where the policy has already gone too far.

Statement:
    The slope of min(ρ·A, clip(ρ, 1−ε, 1+ε)·A) along log π is

        0      where A > 0 and ρ > 1+ε, or A < 0 and ρ < 1−ε,
        ρ·A    everywhere else.

Conditions:
    ρ is the ratio of one token, and not on the edge 1 ± ε itself, where the function has a kink.

Proof:
    dρ/dlog π = ρ. Inside the band both terms are ρ·A. Above it, clip(ρ)·A is the constant
    (1+ε)·A: the smaller term if A > 0, and not if A < 0. Below it, the constant (1−ε)·A is the
    smaller term if A < 0, and not if A > 0. A constant has slope 0.

Refutes:
    "max is the same up to a sign": the maximum removes exactly the slopes that correct (A > 0
    below the band, A < 0 above it) and keeps those that run away. "The clip alone is enough":
    it removes both.

Sources:
    * Schulman et al., "Proximal Policy Optimization Algorithms", arXiv:1707.06347 (abstract seen)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rlproof.faults.sur004 import formula as max_clip
from rlproof.faults.sur009 import formula as clip_only
from rlproof.lab.claims.model import Number, number
from rlproof.space.surrogates import Clip, min_clip

RATIOS = (0.5, 0.9, 1.0, 1.1, 1.5, 5.0)
CLIP = Clip(0.2, 0.2)
ORIGIN = "closed form: ρ·A, or 0 where the constant term is taken"


def slopes(surrogate: Callable[..., Any], advantage: float) -> Any:
    """∂s/∂log π at every ratio of `RATIOS`."""
    ratio = np.array(RATIOS)
    return surrogate(ratio, ratio, np.log(ratio), np.full(len(ratio), advantage), CLIP)[1]


def numbers() -> tuple[Number, ...]:
    """Slopes at ρ = .5, .9, 1, 1.1, 1.5, 5 for both signs, of all three."""
    expected: tuple[tuple[str, Callable[..., Any], float, tuple[float, ...]], ...] = (
        ("min, A = +1", min_clip, 1.0, (0.5, 0.9, 1.0, 1.1, 0.0, 0.0)),
        ("min, A = −1", min_clip, -1.0, (0.0, -0.9, -1.0, -1.1, -1.5, -5.0)),
        ("max instead, A = +1", max_clip, 1.0, (0.0, 0.9, 1.0, 1.1, 1.5, 5.0)),
        ("max instead, A = −1", max_clip, -1.0, (-0.5, -0.9, -1.0, -1.1, 0.0, 0.0)),
        ("clip alone, A = +1", clip_only, 1.0, (0.0, 0.9, 1.0, 1.1, 0.0, 0.0)),
        ("clip alone, A = −1", clip_only, -1.0, (0.0, -0.9, -1.0, -1.1, 0.0, 0.0)),
    )
    return tuple(
        number(f"slopes at ρ = .5, .9, 1, 1.1, 1.5, 5: {name}", slopes(s, a), row, 1e-12, ORIGIN)
        for name, s, a, row in expected
    )
