"""C16. A batch that chose the step overstates what the step gains, even with exact weights.

Statement:
    ĝ comes from a batch of G completions, θ′ = θ + η·ĝ, and the same batch estimates the gain by
    (1/G)·Σ ρ_i·A_i with A_i = r_i − r̄. To first order in η

        E[estimate, same batch] = η·(|E ĝ|² + tr Cov ĝ),
        E[estimate, fresh batch] = η·|E ĝ|².

    The excess is the variance of the gradient. Importance weights do not remove it.

Conditions:
    The step depends on the batch. For a θ′ that is fixed beforehand both estimates agree, at
    (G − 1)/G·(V(θ′) − V): the own completion in r̄ shrinks it (A3).

Proof:
    The derivative of the estimate at θ is (1/G)·Σ A_i·s_i of the batch that evaluates, h. Along
    ĝ it is ⟨h, ĝ⟩. A fresh batch has E⟨h, ĝ⟩ = |E ĝ|², the same batch E|ĝ|².

Refutes:
    "With exact importance weights the surrogate of later epochs is unbiased": for a policy that
    does not depend on the batch. On P4 with G = 2 and η = .5 the batch promises .0145, a fresh
    one says .0039, and V rises by .0077.

Sources:
    * The identity (derived here)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from rlproof.lab.claims._c_shared import SHIFT
from rlproof.lab.claims.model import Number, number
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import p4
from rlproof.lab.groups import groups_of
from rlproof.lab.policies import Floats, Ints, Policy
from rlproof.space.advantages import Advantage
from rlproof.space.objective import Objective

GROUP_MEAN = Objective("group-mean", advantage=Advantage(scale="none"), aggregation="sequence-sum")
SIZE = 2
TABLE = {
    0.5: (0.014510, 0.003873, 0.007746),
    2.0: (0.053083, 0.014885, 0.029771),
    8.0: (0.147274, 0.046821, 0.093642),
}
SMALL = 1e-5


@cache
def batches() -> tuple[tuple[Ints, float], ...]:
    """Every multiset of two of P4's actions, with its probability."""
    groups = groups_of(p4().policy.probs, SIZE)
    return tuple((m, float(w)) for m, w in zip(groups.members, groups.weights, strict=True))


def estimated(policy: Policy, members: Ints) -> float:
    """(1/G)·Σ ρ_i·(r_i − r̄)."""
    rewards, ratio = p4().rewards[members], policy.probs[members] / p4().policy.probs[members]
    return float((ratio * (rewards - rewards.mean())).mean())


def fresh(policy: Policy) -> float:
    """What another batch estimates on average."""
    return sum(weight * estimated(policy, members) for members, weight in batches())


def steps(rate: float) -> Iterator[tuple[Policy, Ints, float]]:
    """The policy after one step, its batch and the probability of that batch."""
    task = p4()
    for members, weight in batches():
        rewards = task.rewards[members]
        ascent: Floats = ((rewards - rewards.mean()) @ task.policy.scores[members]) / SIZE
        yield task.policy.family.at(task.policy.theta + rate * ascent), members, weight


def gains(rate: float) -> tuple[float, float, float]:
    """Expected gain: by the same batch, by a fresh one, and of V."""
    own = other = true = 0.0
    for policy, members, weight in steps(rate):
        own += weight * estimated(policy, members)
        other += weight * fresh(policy)
        true += weight * (policy.value(p4().rewards) - p4().value)
    return own, other, true


def numbers() -> tuple[Number, ...]:
    """Three gains for three step sizes, their limits, and a step that is fixed beforehand."""
    task = p4()
    found = moments(GROUP_MEAN, task, SIZE)
    square = float(found.mean @ found.mean)
    limit = [gain / SMALL for gain in gains(SMALL)]
    fixed = task.policy.family.at(task.policy.theta + np.array(SHIFT))
    return (
        *(
            number(f"gain by the same batch, a fresh one, of V; P4, η = {rate:g}", gains(rate), row,
                   1e-6, "plain loops over 16 ordered pairs")
            for rate, row in TABLE.items()
        ),
        number("gain/η by the same batch, η → 0", limit[0], square + found.total_variance, 1e-6,
               "|E ĝ|² + tr Cov ĝ"),
        number("gain/η by a fresh batch, η → 0", limit[1], square, 1e-6, "|E ĝ|²"),
        number("gain/η of V, η → 0", limit[2], found.mean @ task.gradient, 1e-6, "⟨E ĝ, ∇V⟩"),
        number("same batch over fresh batch, η → 0", limit[0] / limit[1], 3.813811, 1e-3,
               "1 + tr Cov ĝ/|E ĝ|²"),
        number("estimate for a policy fixed beforehand", fresh(fixed),
               0.5 * (fixed.value(task.rewards) - task.value), 1e-12, "(G − 1)/G·(V′ − V)"),
    )  # fmt: skip
