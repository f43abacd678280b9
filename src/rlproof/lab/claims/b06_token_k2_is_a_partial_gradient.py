"""B6. k2 summed over tokens drops what a token does to the divergence of the tokens after it.

Statement:
    With l_t = log(π/ref) of token t and s_t its score, tokens drawn from π:

        E[∇Σ_t k2_t] = ∇KL(π‖ref) − Σ_t E[s_t·Σ_{u>t} l_u].

    Exact on sequences: k2 of the summed log-ratio in the loss, k1 of the sequence in the reward,
    and k1 in the reward of each token, with the sum to go, Σ_{u≥t} l_u, as its return.

Conditions:
    The dropped term is 0 if the expected divergence to go does not depend on the token, as for
    i.i.d. tokens of a length that the policy does not choose. If a token ends the sequence, it
    does depend on it, though tokens are i.i.d. before.

Proof:
    ∇KL = E[(Σ_t s_t)·(Σ_u l_u)]. For u < t, l_u is fixed before token t, and E[s_t | past] = 0
    (A1). The terms u = t are E[l_t·s_t], the gradient of Σ_t k2_t. What is left has u > t.

Refutes:
    "k2 in the loss gives the right KL gradient", said of sums over tokens: for the tree here the
    cosine with ∇KL is .95, and .69 for the worst of eight trees. Token-summed k3 is off as well.

Sources:
    * Tang, Munos, "On a few pitfalls in KL divergence gradient estimation for RL",
      arXiv:2506.09477, for the partial gradient (abstract seen)
    * verl 0.9.1, verl/trainer/ppo/core_algos.py, kl_penalty, a comment that k2 gives the right
      gradient (formula seen)
    * The end token (derived here)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.calculus import compare
from rlproof.lab.claims.model import Number, number
from rlproof.lab.divergences import estimate, kl_gradient_first
from rlproof.lab.fixtures import eos, seed, tree_of
from rlproof.lab.policies import Floats
from rlproof.lab.tasks import Task

TREES = range(8)
RECURSION = "recursion over the prefixes"


def numbers() -> tuple[Number, ...]:
    """What token sums miss on trees and with an end token, and what is exact."""
    tree, ends, tokens = tree_of(0), eos(), seed()
    right = kl_gradient_first(tree.policy, tree.held_to)
    return (
        number("E[∇Σ_t k2] + the dropped term, TREE", summed("k2", tree) + dropped(tree), right,
               1e-12, "E[log(π/ref)·s]"),
        number("largest entry of the dropped term, TREE", float(np.abs(dropped(tree)).max()),
               0.221630, 1e-6, RECURSION),
        number("cosine with ∇KL(π‖ref), TREE: k2 and k3 summed over tokens", cosines(tree),
               (0.952640, 0.930764), 1e-6, RECURSION),
        number("the worst cosine of k2, of eight trees", min(cosines(tree_of(i))[0] for i in TREES),
               0.690419, 1e-6, RECURSION),
        number("k2 of the summed log-ratio, TREE",
               estimate("k2", tree.policy, tree.held_to, level="sequence").gradient, right, 1e-12,
               "E[log(π/ref)·s]"),
        number("k1 of the sequence in the reward, TREE",
               estimate("k1", tree.policy, tree.held_to).in_reward, right, 1e-12, "proof"),
        number("k1 in the reward of each token, with its sum to go, TREE", to_go(tree), right,
               1e-12, "proof"),
        number("the dropped term, SEED", dropped(tokens), (0.0,) * 4, 1e-12,
               "i.i.d. tokens, a length that is not chosen"),
        number("the dropped term, EOS: i.i.d. tokens, but one ends the sequence", dropped(ends),
               (0.006518, 0.005337, 0.004829, -0.016683), 1e-6,
               "π·(h_v − Σ π·h) summed over positions, h the divergence to go"),
        number("relative error of Σ_t k2 there", compare(
            summed("k2", ends), kl_gradient_first(ends.policy, ends.held_to)).relative_error,
            0.060121, 1e-6, "the dropped term over ∇KL"),
    )  # fmt: skip


def summed(name: str, task: Task) -> Floats:
    """E[∇Σ_t d_t]."""
    return estimate(name, task.policy, task.held_to).gradient


def cosines(task: Task) -> list[float]:
    """Cosines of token-summed k2 and k3 with ∇KL(π‖ref)."""
    right = kl_gradient_first(task.policy, task.held_to)
    return [compare(summed(name, task), right).cosine for name in ("k2", "k3")]


def to_go(task: Task) -> Floats:
    """E[Σ_t s_t·Σ_{u≥t} l_u]."""
    log_ratio_NT = task.policy.logps - task.held_to.logps
    rest_NT = np.cumsum(log_ratio_NT[:, ::-1], axis=1)[:, ::-1]
    gradient: Floats = task.policy.expect(
        np.einsum("nt,ntd->nd", rest_NT, task.policy.token_scores)
    )
    return gradient


def dropped(task: Task) -> Floats:
    """Σ_t E[s_t·Σ_{u>t} l_u]."""
    log_ratio_NT = task.policy.logps - task.held_to.logps
    after_NT = np.cumsum(log_ratio_NT[:, ::-1], axis=1)[:, ::-1] - log_ratio_NT
    missing: Floats = task.policy.expect(
        np.einsum("nt,ntd->nd", after_NT, task.policy.token_scores)
    )
    return missing
