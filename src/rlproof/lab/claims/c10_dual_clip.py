"""C10. Dual clip ends the slope of bad tokens whose ratio has run away, and gives up the bound.

Statement:
    For A < 0, dual clip takes max(min(ρ·A, clip(ρ)·A), c·A). Its slope along log π is

        0 for ρ < 1−ε,    ρ·A for 1−ε < ρ < c,    0 for ρ > c.

    For A ≥ 0 it is min-clip. Capping the unclipped ratio, min(min(ρ, δ)·A, clip(ρ)·A), is the
    same function if δ = c > 1 + ε.

Conditions:
    c > 1 + ε; verl requires c > 1 and takes 3 by default. With c < 1 even on-policy tokens with
    A < 0 lose their slope.

Proof:
    For A < 0 and ρ > 1 + ε min-clip is ρ·A, and c·A is larger as soon as ρ > c. A constant has
    slope 0. With the cap, min(ρ, δ)·A is that same maximum for A < 0; for A > 0 the clipped term
    (1+ε)·A is the smaller one before ρ reaches δ.

Refutes:
    "min bounds the loss of every token": for A < 0 it grows with ρ without limit: 20.09 at
    ρ = e³. "Dual clip is still a pessimistic bound": at ρ = 5, A = −1 it is −3, above ρ·A = −5.

Sources:
    * Ye et al., "Mastering Complex Control in MOBA Games with Deep Reinforcement Learning",
      arXiv:1912.09729 (abstract seen)
    * verl 0.9.1, core_algos.py, `clip_ratio_c` (formula seen)
    * TRL 1.16.0, grpo_trainer.py, `delta` (formula seen)
"""

from __future__ import annotations

from math import exp

import numpy as np

from rlproof.lab.claims.model import Number, number
from rlproof.lab.policies import Floats
from rlproof.space.surrogates import Clip, SurrogateFormula, dual_clip, min_clip, two_sided

RATIOS = (0.5, 1.0, 1.5, 2.9, 3.1, 5.0)
CLIP = Clip(0.2, 0.2, cap=3.0)


def at(formula: SurrogateFormula, adv: float, clip: Clip = CLIP) -> tuple[Floats, Floats]:
    """Values and slopes at every ratio of `RATIOS`."""
    ratio = np.array(RATIOS)
    value, slope = formula(ratio, ratio, np.log(ratio), np.full(len(RATIOS), adv), clip)
    return value, slope


def difference() -> tuple[float, float]:
    """Largest |dual clip − two-sided| for A < 0 and for A > 0, in value or slope, on a grid."""
    ratio, clip = np.linspace(0.051, 6.001, 500), CLIP
    found = []
    for adv in (-1.5, 2.0):
        pairs = [
            formula(ratio, ratio, np.log(ratio), np.full(500, adv), clip)
            for formula in (dual_clip, two_sided)
        ]
        found.append(max(float(np.abs(a - b).max()) for a, b in zip(*pairs, strict=True)))
    return found[0], found[1]


def near_the_edge() -> tuple[float, float]:
    """Slopes of dual clip and two-sided at ρ = 1.15 with a cap of 1.1."""
    ratio, clip = np.array([1.15]), Clip(0.2, 0.2, cap=1.1)
    dual, two = (f(ratio, ratio, np.log(ratio), np.ones(1), clip) for f in (dual_clip, two_sided))
    return float(dual[1][0]), float(two[1][0])


def numbers() -> tuple[Number, ...]:
    """Values and slopes for both signs, the two spellings, and what min alone does."""
    value, slope = at(dual_clip, -1.0)
    run_away = np.array([exp(3.0)])
    unbounded = -min_clip(run_away, run_away, np.log(run_away), -np.ones(1), CLIP)[0][0]
    row = "ρ = .5, 1, 1.5, 2.9, 3.1, 5"
    return (
        number(f"dual clip, A = −1, c = 3, {row}", value, (-0.8, -1, -1.5, -2.9, -3, -3), 1e-12,
               "max(min(−ρ, −clip ρ), −3)"),
        number(f"its slopes, {row}", slope, (0, -1, -1.5, -2.9, 0, 0), 1e-12, "closed form"),
        number(f"slopes of min alone, A = −1, {row}", at(min_clip, -1.0)[1],
               (0, -1, -1.5, -2.9, -3.1, -5), 1e-12, "C3"),
        number(f"slopes of dual clip, A = +1, {row}", at(dual_clip, 1.0)[1], (0.5, 1, 0, 0, 0, 0),
               1e-12, "min-clip"),
        number("dual clip − two-sided for A < 0 and A > 0, cap 3", difference(), (0, 0), 1e-12,
               "proof"),
        number("slopes of both at ρ = 1.15, A = +1, with a cap of 1.1 < 1 + ε", near_the_edge(),
               (1.15, 0.0), 1e-12, "ρ·A, and 0 above the cap"),
        number("loss of min at ρ = e³, A = −1, said to be bounded", unbounded, exp(3.0), 1e-9,
               "ρ"),
        number("dual clip above ρ·A, at ρ = 5, A = −1", value[-1] + 5.0, 2.0, 1e-12, "−3 + 5"),
        number("slope of dual clip at ρ = 1, c = .9, A = −1",
               at(dual_clip, -1.0, Clip(cap=0.9))[1][1], 0.0, 1e-12, "c < ρ"),
    )  # fmt: skip
