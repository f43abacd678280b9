"""B5. k2 in the loss, on-policy, has exactly the gradient of KL(π‖ref), though its value is off.

Statement:
    With k2 = (log π − log ref)²/2 and samples from π,

        E_π[∇k2] = E_π[log(π/ref)·s] = ∇KL(π‖ref).

Conditions:
    On-policy. One token, tokens that do not influence each other, or k2 of the whole sequence's
    log-ratio; the sum of k2 over the tokens of a history-dependent policy is not enough (B6).

Proof:
    ∇k2 = log(π/ref)·s. ∇KL(π‖ref) = Σ ∇π·log(π/ref) + Σ π·∇log π; the last sum is E_π[s] = 0
    (A1), and ∇π = π·s.

Refutes:
    "An estimator that is biased in value is biased in gradient, and the other way round": k2 is
    biased in value (B1) and exact in gradient; k3 is unbiased in value and has the gradient of
    KL(ref‖π) (B4). "k2 pulls harder than the divergence, as its value is larger": the gradient
    is the same where its value is twice the KL.

Sources:
    * Liu et al., "Rethinking KL Regularization in RLHF: From Value Estimation to Gradient
      Optimization", arXiv:2510.01555 (abstract seen)
    * verl 0.9.1, verl/trainer/ppo/core_algos.py, kl_penalty: estimators named with a plus have
      the slope of k2 (formula seen)
"""

from __future__ import annotations

from rlproof.lab.calculus import jacobian
from rlproof.lab.claims._b_shared import descends, peaked, penalty, uniform
from rlproof.lab.claims.model import Number, number
from rlproof.lab.divergences import estimate, kl, kl_gradient_first
from rlproof.lab.fixtures import p4, p4_ref2, seed, tree_of

CLOSED = "closed form π·(log(π/ref) − KL)"


def numbers() -> tuple[Number, ...]:
    """On one token near and far, on sequences, and through the whole objective."""
    p, q = p4().policy, p4().held_to
    tree, tokens, flat, far = tree_of(0), seed(), uniform(), peaked(0.01)
    right = kl_gradient_first(p, q)
    return (
        number("E[∇k2], P4", estimate("k2", p, q).gradient,
               (0.208284, -0.011672, -0.090782, -0.105830), 1e-6, CLOSED),
        number("∇KL(π‖ref) by differences, P4", jacobian(lambda t: kl(p.family.at(t), q), p.theta),
               right, 1e-9, CLOSED),
        number("GRPO's loss with k2, β = 1 and rewards 0, P4", descends(penalty("k2"), p4()),
               right, 1e-12, CLOSED),
        number("the same with the value of k3 and the slope of k2, P4 against ref2",
               descends(penalty("k3", gradient="straight-through-k2"), p4_ref2()),
               kl_gradient_first(p, p4_ref2().held_to), 1e-12, CLOSED),
        number("E[∇k2], π = (.97, .01, .01, .01), ref uniform", estimate("k2", far, flat).gradient,
               (0.133124, -0.044375, -0.044375, -0.044375), 1e-6, CLOSED),
        number("E[k2]/KL, π uniform, ref = (.97, .01, .01, .01)",
               estimate("k2", flat, far).mean / kl(flat, far), 1.983050, 1e-6,
               "sums over the four arms"),
        number("E[∇k2] there", estimate("k2", flat, far).gradient,
               (-0.857758, 0.285919, 0.285919, 0.285919), 1e-6, CLOSED),
        number("E[∇k2] of whole sequences, TREE",
               estimate("k2", tree.policy, tree.held_to, level="sequence").gradient,
               kl_gradient_first(tree.policy, tree.held_to), 1e-12, "E[log(π/ref)·s]"),
        number("E[∇Σ_t k2], SEED: i.i.d. tokens, a length that is not chosen",
               estimate("k2", tokens.policy, tokens.held_to).gradient,
               kl_gradient_first(tokens.policy, tokens.held_to), 1e-12, "E[L] = 3 times one token"),
    )  # fmt: skip
