"""C4. The minimum bounds the surrogate from below, but not the improvement of the policy.

Statement:
    For every ρ > 0, A and ε,

        min(ρ·A, clip(ρ)·A) ≤ ρ·A ≤ max(ρ·A, clip(ρ)·A),

    so the clipped surrogate is a pessimistic estimate of E_old[ρ·A], and max an optimistic one.

Conditions:
    For one token per sequence and A = R − V_old, E_old[ρ·A] is V_new − V_old itself, and the
    bound holds for the improvement. With several tokens E_old[Σ_t ρ_t·A] is only the
    first-order part of it (C12), and the bound can fail.

Proof:
    A minimum is at most, a maximum at least, each of its terms. For one token
    E_old[ρ·(R − V_old)] = E_new[R] − V_old.

Refutes:
    "PPO maximises a lower bound of the improvement": of the surrogate. On TREE a step without
    any clipped token has a surrogate of −.0071475 and an improvement of −.0072027. "max is as
    good": it promises −.038 for a step that costs .114.

Sources:
    * Schulman et al., "Proximal Policy Optimization Algorithms", arXiv:1707.06347, which calls
      the clipped objective a pessimistic estimate (formula seen)
    * The counterexample for several tokens (derived here)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rlproof.faults.sur004 import formula as max_clip
from rlproof.lab.claims._c_shared import CLIP, SHIFT, moved, of_tokens, shifted
from rlproof.lab.claims.model import Number, number
from rlproof.lab.tasks import Task
from rlproof.space.surrogates import min_clip, unclipped

BACK = tuple(-x for x in SHIFT)
TERMS = {"unclipped": unclipped, "min": min_clip, "max": max_clip}
TABLE = {
    "forth": (SHIFT, (0.111412, 0.050343, 0.111412)),
    "back": (BACK, (-0.114012, -0.114012, -0.038027)),
}


def promised(formula: Callable[..., Any], task: Task) -> float:
    """E_old[s] of one token."""
    return float(task.drawn_from.expect(of_tokens(formula, task)[0]))


def grid_excess() -> tuple[float, float]:
    """Largest min − ρ·A and largest ρ·A − max over ratios 0.05 … 5 and advantages −3 … 3."""
    ratio, adv = (g.ravel() for g in np.meshgrid(np.linspace(0.05, 5, 100), np.linspace(-3, 3, 61)))
    low, mid, high = (f(ratio, ratio, np.log(ratio), adv, CLIP)[0] for f in
                      (min_clip, unclipped, max_clip))  # fmt: skip
    return float((low - mid).max()), float((mid - high).max())


def of_tree(formula: Callable[..., Any], delta: float) -> float:
    """E_old[Σ_t s_t] on TREE, moved by `delta`."""
    task = moved(0, delta)
    new, old = task.policy.logps, task.drawn_from.logps
    ratio = np.exp(new - old)
    adv = task.rewards[:, None] + 0 * ratio
    return float(task.drawn_from.expect(formula(ratio, ratio, new, adv, CLIP)[0].sum(axis=1)))


def numbers() -> tuple[Number, ...]:
    """Bounds on a grid, promises and gains on P4, and a promise on TREE that is not kept."""
    tree = moved(0, 0.05)
    gain = tree.policy.value(tree.rewards)
    promise, free = (of_tree(formula, 0.05) for formula in (min_clip, unclipped))
    return (
        number(
            "max over a grid of min − ρ·A and of ρ·A − max", grid_excess(), (0, 0), 1e-12, "proof"
        ),
        *(
            number(
                f"E_old of ρ·A, min, max on P4, {name}",
                [promised(formula, shifted(shift)) for formula in TERMS.values()],
                row,
                1e-6,
                "plain sum over four actions",
            )
            for name, (shift, row) in TABLE.items()
        ),
        *(
            number(
                f"V_new − V_old, P4, {name}",
                shifted(shift).policy.value(shifted(shift).rewards),
                row[0],
                1e-6,
                "E_old[ρ·A]",
            )
            for name, (shift, row) in TABLE.items()
        ),
        number("E_old[Σ_t min] on TREE, moved by .05", promise, -0.007147, 1e-6, "recursion"),
        number("the same without a clip: no token is clipped", free, promise, 1e-12, "equal"),
        number(
            "V_new − V_old on TREE, said to be at least that", gain, -0.007203, 1e-6, "recursion"
        ),
    )
