"""B4. k3 in the loss, on-policy, has the gradient of KL(ref‖π), not of KL(π‖ref).

Statement:
    Let r = ref/π and k3 = r − 1 − log r, with tokens drawn from π. Then

        E_π[∇k3] = E_π[(1 − r)·s] = −E_ref[s] = ∇KL(ref‖π),

    which for one softmax row is π − ref.

Conditions:
    On-policy, and the gradient flows through the estimate. For one token, for tokens that do not
    depend on each other, or for k3 of the whole sequence's log-probability. Summed over the
    tokens of a history-dependent policy it is Σ_x π(x)·∇KL(ref_x‖π_x): the forward divergence of
    each prefix x, weighted by how often π, not ref, reaches it. ref > 0 only where π > 0.

Proof:
    ∇r = −r·s and ∇log r = −s, so ∇k3 = (1 − r)·s. E_π[s] = 0 (A1) and
    E_π[r·s] = Σ ref·s = E_ref[s]. KL(ref‖π) = const − E_ref[log π] has the gradient −E_ref[s].
    For a softmax row, E_ref[s] = ref − π.

Refutes:
    "k3 is an unbiased estimate of KL(π‖ref), so with k3 in the loss one descends KL(π‖ref)."
    The value is unbiased; the gradient is that of the other direction. Papers differ in which
    of the two they call reverse.

Sources:
    * Tang, Munos, "On a few pitfalls in KL divergence gradient estimation for RL",
      arXiv:2506.09477 (abstract seen)
    * Liu et al., "Rethinking KL Regularization in RLHF: From Value Estimation to Gradient
      Optimization", arXiv:2510.01555, which calls k3 as a loss a biased first-order
      approximation (abstract seen)
    * Schulman, "Approximating KL Divergence", joschu.net/blog/kl-approx.html, for the
      definition (formula seen)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.calculus import compare, jacobian
from rlproof.lab.claims.model import Number, number
from rlproof.lab.divergences import estimate, kl, kl_gradient_first, kl_gradient_second
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import p4, tree_of
from rlproof.lab.policies import Policy, bandit
from rlproof.space.advantages import Advantage
from rlproof.space.objective import Divergence, Objective

ONLY_K3 = Objective(
    "k3", advantage=Advantage(scale="none"), divergence=Divergence("loss", coefficient=1.0)
)
PI_MINUS_REF = (0.205054, 0.026004, -0.082595, -0.148464)
TOWARDS_REF = (0.208284, -0.011672, -0.090782, -0.105830)
WANTED = "closed form π·(log(π/ref) − KL)"


def numbers() -> tuple[Number, ...]:
    """The gradient on P4, against both directions, far from the reference, and on TREE."""
    policy, reference = p4().policy, p4().held_to
    in_loss = estimate("k3", policy, reference)
    forward, reverse = kl_gradient_second(reference, policy), kl_gradient_first(policy, reference)
    by_loss = -moments(ONLY_K3, p4().but(rewards=np.zeros(4)), 2).mean
    numeric = jacobian(lambda t: kl(reference, policy.family.at(t)), policy.theta)
    minus = "closed form π − ref"
    return (
        number("E[∇k3], P4", in_loss.gradient, PI_MINUS_REF, 1e-6, minus),
        number("∇KL(ref‖π) by differences, P4", numeric, forward, 1e-9, "−E_ref[s]"),
        number("GRPO's loss with β = 1 and rewards 0, P4", by_loss, forward, 1e-12, minus),
        number("E[k3], P4", in_loss.mean, 0.141244, 1e-6, "KL(π‖ref) = Σ π·log(π/ref)"),
        number("∇KL(π‖ref), said to be followed, P4", reverse, TOWARDS_REF, 1e-6, WANTED),
        number("cosine of the two, P4", compare(forward, reverse).cosine, 0.9774, 5e-5, WANTED),
        *_far(),
        *_on_tree(),
    )


def uniform() -> Policy:
    """Four arms of equal probability."""
    return bandit(4).at(np.zeros(4))


def _far() -> tuple[Number, ...]:
    policy = bandit(4).at_probs((0.97, 0.01, 0.01, 0.01))
    in_loss = float(np.linalg.norm(estimate("k3", policy, uniform()).gradient))
    wanted = float(np.linalg.norm(kl_gradient_first(policy, uniform())))
    return (
        number("|E[∇k3]|, π = (.97, .01, .01, .01)", in_loss, 0.831384, 1e-6, "√(.72² + 3·.24²)"),
        number("|∇KL(π‖ref)| there", wanted, 0.153718, 1e-6, WANTED),
        number("how many times too strong", in_loss / wanted, 5.4085, 5e-4, "both closed forms"),
    )


def _on_tree() -> tuple[Number, ...]:
    task = tree_of(0)
    policy, reference = task.policy, task.held_to
    forward = kl_gradient_second(reference, policy)
    by_token = estimate("k3", policy, reference).gradient
    by_sequence = estimate("k3", policy, reference, level="sequence").gradient
    rows_SV = np.exp(policy.log_table) - np.exp(reference.log_table)
    visits_NT = policy.probs[:, None] * policy.family.mask
    reached_S = np.bincount(policy.family.rows.ravel(), weights=visits_NT.ravel())
    by_prefix = (rows_SV * reached_S[:, None]).ravel()
    return (
        number("E[∇k3] of whole sequences, TREE", by_sequence, forward, 1e-12, "−E_ref[s]"),
        number("E[∇Σ_t k3], TREE", by_token, by_prefix, 1e-12, "Σ_x π(x)·(π_x − ref_x), 13 rows"),
    )
