"""C14. CISPO clips the weight and keeps every token's slope; it is biased where it clips.

Statement:
    s = stop_gradient(clip(ρ))·A·log π has the slope clip(ρ)·A, which is 0 only for A = 0. With
    an upper cap c alone,

        E_old[ĝ] = ∇V(new) − E_old[(ρ − c)⁺·A·∇log π]

    for one token per sequence. On-policy it is REINFORCE.

Conditions:
    Exact if no ρ exceeds the cap. What `high` means differs: 1 + high is the cap in verl, high
    itself in TRL. A lower clip raises small weights to 1 − low instead of ending them.

Proof:
    The weight is constant, so the slope is weight·A. min(ρ, c) = ρ − (ρ − c)⁺, and
    E_old[ρ·A·s] = ∇V for one token (C1). At ρ = 1 the weight is 1.

Refutes:
    "CISPO is PPO with another clip": min-clip gives tokens beyond the band the slope 0, CISPO
    the slope c·A. On P4 min-clip is 71 % off ∇V, CISPO with cap 1.2 8 %. "Its value shows
    progress": it is E[A·log π], .174 for P4 at the start, where that of min-clip is 0.

Sources:
    * MiniMax, "MiniMax-M1: Scaling Test-Time Compute Efficiently with Lightning Attention",
      arXiv:2506.13585 (formula seen)
    * TRL 1.16.0, grpo_trainer.py, and verl 0.9.1, core_algos.py (formula seen)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.calculus import Comparison, compare
from rlproof.lab.claims._c_shared import PLAIN, expected, shifted
from rlproof.lab.claims.model import Number, number
from rlproof.lab.fixtures import p4
from rlproof.lab.policies import Floats
from rlproof.space.objective import Objective
from rlproof.space.scores import cispo
from rlproof.space.surrogates import Clip

RATIOS = (0.5, 1.0, 1.2, 4.5, 6.0)
CAPS = {1.0: 0.157715, 1.2: 0.083194, 1.5: 0.0}


def capped(cap: float) -> Objective:
    """CISPO with this cap on ρ."""
    return PLAIN.but(surrogate="cispo", clip=Clip(None, cap, convention="absolute"))


def slopes(adv: float, clip: Clip) -> Floats:
    """∂s/∂log π at every ratio of `RATIOS`."""
    ratio = np.array(RATIOS)
    slope: Floats = cispo(ratio, ratio, np.log(ratio), np.full(len(RATIOS), adv), clip)[1]
    return slope


def against(objective: Objective) -> Comparison:
    """E[ĝ] on P4 shifted, against ∇V."""
    task = shifted()
    return compare(expected(objective, task), task.gradient)


def numbers() -> tuple[Number, ...]:
    """Slopes under three conventions, bias by cap, and what happens on-policy."""
    still, task = shifted((0.0,) * 4), shifted()
    ratio = task.policy.probs / task.drawn_from.probs
    excess = np.maximum(ratio - 1.2, 0) * task.rewards
    bias = task.drawn_from.expect(excess[:, None] * task.policy.scores)
    logp = still.policy.logps[:, 0]
    value = cispo(np.ones(4), np.ones(4), logp, still.rewards, Clip(None, 4.0))[0]
    row = "ρ = .5, 1, 1.2, 4.5, 6"
    return (
        number(f"slopes, A = +1, high = 4 as 1 + high, {row}", slopes(1, Clip(None, 4.0)),
               (0.5, 1, 1.2, 4.5, 5), 1e-12, "min(ρ, 5)"),
        number(f"slopes, A = −1, high = 4 as the cap itself, {row}",
               slopes(-1, Clip(None, 4.0, convention="absolute")), (-0.5, -1, -1.2, -4, -4), 1e-12,
               "−min(ρ, 4)"),
        number(f"slopes, A = +1, both sides clipped at .8 and 1.2, {row}",
               slopes(1, Clip(0.2, 0.2)), (0.8, 1, 1.2, 1.2, 1.2), 1e-12, "clip(ρ)"),
        *(
            number(f"relative error of E[ĝ], P4 shifted, cap {cap}",
                   against(capped(cap)).relative_error, error, 1e-6, "plain sum over four actions")
            for cap, error in CAPS.items()
        ),
        number("relative error of min-clip there",
               against(PLAIN.but(surrogate="min-clip")).relative_error, 0.711447, 1e-6,
               "plain sum"),
        number("cosine with ∇V of min-clip and of CISPO, cap 1.2",
               (against(PLAIN.but(surrogate="min-clip")).cosine, against(capped(1.2)).cosine),
               (0.839897, 0.999782), 1e-6, "plain sum"),
        number("E[ĝ] with cap 1.2", expected(capped(1.2), task), task.gradient - bias, 1e-12,
               "∇V − E_old[(ρ − 1.2)⁺·A·s]"),
        number("E[ĝ] on-policy, P4", expected(capped(1.2), still), p4().gradient, 1e-12, "∇V"),
        number("value on-policy, said to be the progress", float(still.policy.expect(value)),
               0.174046, 1e-6, "E[A·log π]"),
    )  # fmt: skip
