"""B8. k1 in the reward, held constant, has exactly the gradient of KL(π‖ref).

Statement:
    With the reward R − β·Σ_t log(π/ref)_t, where π inside the logarithm is not differentiated,
    the policy gradient is

        ∇V − β·∇KL(π‖ref).

Conditions:
    On-policy. Whole sequences in the reward, or a return to go of each token (B6). Advantages
    without a standard deviation; leave-one-out or no baseline, else everything, reward and
    penalty alike, shrinks by (G − 1)/G (A3).

Proof:
    ∇KL(π‖ref) = E_π[log(π/ref)·s] + E_π[∇log π], and the second term is 0 (A1). The first is
    what the score function makes of a penalty k1 in the reward.

Refutes:
    "Detaching π in the penalty loses its gradient": what is lost has mean 0. It is what remains
    of k1 as a loss (B7).

Sources:
    * Liu et al., "Rethinking KL Regularization in RLHF: From Value Estimation to Gradient
      Optimization", arXiv:2510.01555 (abstract seen)
    * Shah et al., "A Comedy of Estimators: On KL Regularization in RL Training of LLMs",
      arXiv:2512.21852 (abstract seen)
"""

from __future__ import annotations

from rlproof.lab.calculus import compare, jacobian
from rlproof.lab.claims._b_shared import descends, penalty
from rlproof.lab.claims.model import Number, number
from rlproof.lab.divergences import estimate, kl, kl_gradient_first
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import eos, p4, p4_ref2, tree_of
from rlproof.lab.tasks import Task
from rlproof.space.advantages import Advantage

BY_DIFFERENCES = "central differences of KL"


def numbers() -> tuple[Number, ...]:
    """On one token, on trees, with an end token, beside a reward, and with GRPO's baseline."""
    in_reward, tree, ends = penalty("k1", "reward"), tree_of(0), eos()
    own_mean = in_reward.but(advantage=Advantage(scale="none"))
    both = moments(in_reward, p4_ref2(), 2).mean
    p, q = p4_ref2().policy, p4_ref2().held_to
    detached_part = estimate("k1", tree.policy, tree.held_to).gradient
    return (
        number("E[k1·s], P4", estimate("k1", p4().policy, p4().held_to).in_reward,
               (0.208284, -0.011672, -0.090782, -0.105830), 1e-6, "π·(log(π/ref) − KL)"),
        number("k1 in the reward, β = 1, rewards 0, P4", descends(in_reward, p4()),
               by_differences(p4()), 1e-9, BY_DIFFERENCES),
        number("the same, TREE", descends(in_reward, tree), by_differences(tree), 1e-9,
               BY_DIFFERENCES),
        number("the same, EOS", descends(in_reward, ends), by_differences(ends), 1e-9,
               BY_DIFFERENCES),
        number("with rewards (1, .6, .3, 0), β = 1, P4 against ref2", both,
               (-0.145380, 0.160226, -0.053482, 0.038637), 1e-6, "π·(R − V) − π·(log(π/ref) − KL)"),
        number("the penalty's share over ∇KL with the group's mean, G = 4", compare(
            descends(own_mean, p4_ref2(), 4), kl_gradient_first(p, q)).ratios, (0.75,) * 4, 1e-12,
               "closed form (G−1)/G"),
        number("what detaching leaves out, TREE", detached_part, (0.0,) * 39, 1e-12, "E[s] = 0"),
    )  # fmt: skip


def by_differences(task: Task) -> tuple[float, ...]:
    """∇KL(π‖ref) by central differences."""
    family, reference = task.policy.family, task.held_to
    return tuple(jacobian(lambda t: kl(family.at(t), reference), task.policy.theta))
