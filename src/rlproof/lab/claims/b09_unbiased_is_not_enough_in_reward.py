"""B9. k3 in the reward, unbiased as it is, can push the policy away from the reference.

Statement:
    Held constant in the reward, on-policy, as directions that are descended:

        k3:  ∇KL(π‖ref) − ∇KL(ref‖π),        k2:  ∇E[k2] − ∇KL(π‖ref).

    Near the reference both are of the second order in the gap where ∇KL(π‖ref) is of the first:
    the penalty is missing. Far from it they can have the opposite sign.

Conditions:
    On-policy; one token, or k of the whole sequence's log-ratio. The far example has three equal
    arms, so that only one direction is left and the cosine is +1 or −1.

Proof:
    k3 = k1 + (r − 1), r = ref/π. E[k1·s] = ∇KL(π‖ref) (B8), and E[(r − 1)·s] = E_ref[s] =
    −∇KL(ref‖π). For k2: ∇E[k2] = E[k2·s] + E[∇k2], and E[∇k2] = ∇KL(π‖ref) (B5).

Refutes:
    "Any unbiased estimator of KL(π‖ref) works in the reward": what adds 0 to the value, r − 1,
    does not add 0 to E[d·s]. Cosine with ∇KL(π‖ref): −.18 (k3) and +.19 (k2) at P4, −1 for both
    at π = (.97, .01, .01, .01).

Sources:
    * Shah et al., "A Comedy of Estimators: On KL Regularization in RL Training of LLMs",
      arXiv:2512.21852 (abstract seen)
    * The decompositions and the orders (derived here)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.calculus import compare, jacobian
from rlproof.lab.claims._b_shared import descends, peaked, penalty, uniform
from rlproof.lab.claims.model import Number, number
from rlproof.lab.divergences import estimate, kl, kl_gradient_first, kl_gradient_second
from rlproof.lab.fixtures import P4_LOGITS, p4
from rlproof.lab.policies import Floats, Policy, bandit

STEP = 0.05


def numbers() -> tuple[Number, ...]:
    """P4, far away, near, and whether a step of descent brings the policy closer."""
    p, flat, far = p4().policy, uniform(), peaked(0.01)
    forward, reverse = kl_gradient_second(flat, p), kl_gradient_first(p, flat)
    value = jacobian(lambda t: estimate("k2", p.family.at(t), flat).mean, p.theta)
    return (
        number("k3 in the reward, P4", in_reward("k3", p),
               (0.003229, -0.037676, -0.008187, 0.042634), 1e-6,
               "closed form π·(log(π/ref) − KL) − (π − ref)"),
        number("k3 in the reward of a whole objective, P4", descends(penalty("k3", "reward"), p4()),
               reverse - forward, 1e-12, "∇KL(π‖ref) − ∇KL(ref‖π)"),
        number("k2 in the reward, P4", in_reward("k2", p), value - reverse, 1e-9,
               "∇E[k2] by differences − ∇KL(π‖ref)"),
        number("cosines of k1, k2, k3 in the reward with ∇KL(π‖ref), P4", cosines(p),
               (1.0, 0.187423, -0.183880), 1e-6, "closed forms"),
        number("the same, π = (.97, .01, .01, .01)", cosines(far), (1.0, -1.0, -1.0), 1e-12,
               "one direction is left; signs from closed forms"),
        number("first entry there, of k1, k2, k3", [in_reward(k, far)[0] for k in NAMES],
               (0.133124, -0.124008, -0.586876), 1e-6, "closed forms"),
        number("change of KL(π‖ref) by a step of .05 down k1, k2, k3 there",
               [_change(k, far) for k in NAMES], (-0.001185, 0.001097, 0.005136), 1e-6,
               "KL of the stepped logits, by hand"),
        number("|k3 in the reward| / |∇KL(π‖ref)| at logits P4·δ, δ = .01", _share(0.01),
               0.002236, 1e-6, "closed forms"),
        number("the same at δ = .005, over it", _share(0.005) / _share(0.01), 0.5, 5e-3,
               "second order over first; the rest is O(δ)"),
    )  # fmt: skip


NAMES = ("k1", "k2", "k3")


def in_reward(name: str, policy: Policy) -> Floats:
    """E[d·s] of an estimator, the reference uniform."""
    return estimate(name, policy, uniform()).in_reward


def cosines(policy: Policy) -> list[float]:
    """With ∇KL(π‖ref), for k1, k2 and k3."""
    right = kl_gradient_first(policy, uniform())
    return [compare(in_reward(name, policy), right).cosine for name in NAMES]


def _change(name: str, policy: Policy) -> float:
    stepped = policy.family.at(policy.theta - STEP * in_reward(name, policy))
    return kl(stepped, uniform()) - kl(policy, uniform())


def _share(scale: float) -> float:
    policy = bandit(4).at(scale * np.array(P4_LOGITS))
    right = kl_gradient_first(policy, uniform())
    return float(np.linalg.norm(in_reward("k3", policy)) / np.linalg.norm(right))
