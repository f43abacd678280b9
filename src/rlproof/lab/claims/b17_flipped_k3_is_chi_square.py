"""B17. k3 with its operands swapped estimates χ²(π‖ref) − KL(π‖ref), and trains like no penalty.

Statement:
    For tokens drawn from π and d = π/ref − 1 − log(π/ref),

        E_π[d] = χ²(π‖ref) − KL(π‖ref),        E_π[∇d] = ½·∇χ²(π‖ref).

    It is never negative and 0 only at π = ref, as k3 is.

Conditions:
    On-policy; one token or independent tokens. ref > 0 where π > 0. Drawn from ref, the same d
    is an unbiased estimate of KL(ref‖π): there it is the right formula.

Proof:
    E_π[π/ref] = χ² + 1. The slope along log π is π/ref − 1, and ∇χ² = ∇Σ π²/ref =
    2·E_π[(π/ref)·s]. Near π₀ = 1 − q, ref uniform, its pull on the first logit is about 4q; that
    of k3 is about 3/4. What vanishes with q can't stop a reward that vanishes with q as well.

Refutes:
    "If the formula were wrong, the reward would show it": the tiny trainer ends higher with it,
    .9926 for .9842, near the .9929 of no penalty at all.

Sources:
    * Schulman, "Approximating KL Divergence", joschu.net/blog/kl-approx.html, for the right
      operands (formula seen)
    * The two divergences (derived here)
"""

from __future__ import annotations

from math import exp

import numpy as np

from rlproof import tiny
from rlproof.faults.kld002 import formula
from rlproof.lab.calculus import jacobian
from rlproof.lab.claims._b_shared import peaked, success, trained, uniform
from rlproof.lab.claims.model import Number, number
from rlproof.lab.divergences import chi_square, chi_square_gradient_first, estimate, kl
from rlproof.lab.fixtures import p4
from rlproof.lab.policies import Floats, Policy

ARRAYS = "a second trainer, vectorised, on the same random numbers"


def numbers() -> tuple[Number, ...]:
    """Values and gradients of the swapped form, its pull near the end, and what it trains to."""
    policy, flat, far, end = p4().policy, uniform(), peaked(0.01), peaked(0.001 / 3)
    right = chi_square_gradient_first(policy, flat) / 2
    numeric = jacobian(lambda t: chi_square(policy.family.at(t), flat) / 2, policy.theta)
    swapped = success(trained(lambda new, ref: exp(new - ref) - 1, beta=0.04))
    return (
        number("E_π[d] and KL(π‖ref), P4", (value(policy, policy), kl(policy, flat)),
               (0.145103, 0.141244), 1e-6, "χ² − KL, and KL, as sums over the four arms"),
        number("the same, π = (.97, .01, .01, .01)", (value(far, far), kl(far, flat)),
               (1.546206, 1.218594), 1e-6, "2.7648 − KL, and KL"),
        number("E_π[d] − χ²(π‖ref) + KL(π‖ref), P4",
               value(policy, policy) - chi_square(policy, flat) + kl(policy, flat), 0.0, 1e-12,
               "proof"),
        number("E_π[∇d], P4", gradient(policy), (0.242940, -0.050324, -0.103243, -0.089372), 1e-6,
               "closed form 4π·(π − Σπ²)"),
        number("½·∇χ²(π‖ref), P4", numeric, right, 1e-9, "E_π[(π/ref)·s]"),
        number("E_ref[d], P4", value(policy, flat), 0.151044, 1e-6, "KL(ref‖π)"),
        number("pull on the first logit over q, π = (1 − q, q/3, …), q = .001: swapped, k3",
               (gradient(end)[0] / 0.001, estimate("k3", end, flat).gradient[0] / 0.001),
               (3.990672, 749.0), 1e-5, "4(1 − q)(1 − 4q/3), and (3/4 − q)/q"),
        number("expected reward after 60 steps of the tiny trainer, seed 0, with d", swapped,
               0.992628, 1e-6, ARRAYS),
        number("the same with k3", success(tiny.train()[0]), 0.984236, 1e-6, ARRAYS),
        number("the same without a penalty", success(tiny.train(beta=0.0)[0]), 0.992920, 1e-6,
               ARRAYS),
    )  # fmt: skip


def value(policy: Policy, drawn: Policy) -> float:
    """E[d] of one token, the reference uniform."""
    return float(drawn.probs @ formula(policy.log_table[0], uniform().log_table[0])[0])


def gradient(policy: Policy) -> Floats:
    """E_π[∇d]."""
    slope = formula(policy.log_table[0], uniform().log_table[0])[1]
    expected: Floats = policy.expect(np.asarray(slope)[:, None] * policy.scores)
    return expected
