"""E8. Exact maximisation with advantages over σ raises the success rate to a point above ref's.

Statement:
    If π_{n+1} maximises E[A] − β·KL(π‖ref) with A = (R − p_n)/√(p_n(1 − p_n)) and binary R, then

        p_{n+1} = 1/(1 + (1 − p_ref)/p_ref · exp(−1/(β·√(p_n(1 − p_n))))).

    Every fixed point is above p_ref. p = 1 is always one (as a limit), it attracts, and if there
    is another one below, an unstable one lies between: where the iteration ends depends on where
    it starts.

Conditions:
    Each step is solved exactly, with the true KL(π‖ref), no clip, infinite groups. A trainer with
    k3 in the loss has another fixed point, as its gradient is another one (B4).

Proof:
    The maximiser is ref·exp(A/β) over its sum. A takes (1 − p)/σ and −p/σ, which differ by 1/σ:
    the odds of success are those of ref times exp(1/(βσ)), which is more than 1. As p → 1,
    1/σ → ∞ and 1 − p_{n+1} falls faster than any power of 1 − p_n. Without σ the difference is
    1 and one step is all: odds times exp(1/β).

Refutes:
    "There is one fixed point": from p = .05 at β = 1 it is .3127, and from p = .98 it is 1, with
    .9772 in between. "GRPO cannot leave the reference's success rate behind": from .25 to .81.

Sources:
    * Mroueh, "Reinforcement Learning with Verifiable Rewards: GRPO's Effective Loss, Dynamics,
      and Success Amplification", arXiv:2503.06639 (abstract seen)
    * The unstable point and the limit at 1 (derived here)
"""

from __future__ import annotations

from math import exp, sqrt

import numpy as np

from rlproof.lab.claims.model import Number, number
from rlproof.lab.divergences import kl_gradient_first
from rlproof.lab.fixtures import bernoulli
from rlproof.lab.policies import Floats, bandit

FIXED = {1.0: (0.312723, 0.810325, 1.0), 5.0: (0.094443, 0.337250, 0.600696)}
REFERENCES = (0.05, 0.25, 0.5)


def following(p: float, reference: float, beta: float) -> float:
    """The success rate after one step from p: the Gibbs policy of two arms."""
    if not 0 < p < 1:
        return p
    sigma = sqrt(p * (1 - p))
    advantages = np.array([1 - p, -p]) / sigma
    logits = np.log([reference, 1 - reference]) + advantages / beta
    return float(bandit(2).at(logits).probs[0])


def numbers() -> tuple[Number, ...]:
    """The maximiser, one step, where it ends from the reference, and the unstable point."""
    ends = {beta: [end(r, r, beta) for r in REFERENCES] for beta in FIXED}
    first = [following(r, r, 1.0) for r in REFERENCES]
    closed = [1 / (1 + (1 - r) / r * exp(-1 / sqrt(r * (1 - r)))) for r in REFERENCES]
    return (
        number("gradient of E[A] − β·KL at the maximiser, p = .3, ref = .2, β = .5",
               _stationary(0.3, 0.2, 0.5), (0.0, 0.0), 1e-12, "it is a maximum"),
        number("one step from p_ref = .05, .25, .5 at β = 1", first, closed, 1e-12, "closed form"),
        *(
            number(f"where it ends from p_ref = .05, .25, .5 at β = {beta:g}", ends[beta], row,
                   1e-6, "bisection of p = f(p)")
            for beta, row in FIXED.items()
        ),
        number("where it ends from .97 and from .98, p_ref = .05, β = 1",
               [end(start, 0.05, 1.0) for start in (0.97, 0.98)], (0.312723, 1.0), 1e-6,
               "both sides of the unstable point"),
        number("the unstable point", unstable(0.05, 1.0), 0.977229, 1e-6, "bisection"),
        number("without σ: p_ref = .05, .25, .5 at β = 1",
               [_mean_only(r, 1.0) for r in REFERENCES], (0.125161, 0.475367, 0.731059), 1e-6,
               "odds times e"),
    )  # fmt: skip


def end(start: float, reference: float, beta: float) -> float:
    """The limit of the iteration."""
    p = start
    for _ in range(200):
        after = following(p, reference, beta)
        if abs(after - p) < 1e-13:
            return after
        p = after
    return p


def unstable(reference: float, beta: float) -> float:
    """Between what ends low and what ends at 1, by bisection of the start."""
    low, high = 0.5, 0.999
    while high - low > 1e-7:
        middle = (low + high) / 2
        if end(middle, reference, beta) > 0.999:
            high = middle
        else:
            low = middle
    return (low + high) / 2


def _stationary(p: float, reference: float, beta: float) -> Floats:
    """∇(E_π[A] − β·KL(π‖ref)) at the step's result; A is held at p."""
    family = bandit(2)
    new = family.at_probs((q := following(p, reference, beta), 1 - q))
    held = family.at_probs((reference, 1 - reference))
    advantages = (bernoulli(p).rewards - p) / sqrt(p * (1 - p))
    gradient: Floats = new.gradient(advantages) - beta * kl_gradient_first(new, held)
    return gradient


def _mean_only(reference: float, beta: float) -> float:
    logits = np.log([reference, 1 - reference]) + np.array([1.0, 0.0]) / beta
    return float(bandit(2).at(logits).probs[0])
