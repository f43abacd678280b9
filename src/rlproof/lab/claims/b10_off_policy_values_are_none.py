"""B10. With tokens of an older policy, the mean of k3 is the divergence of neither policy.

Statement:
    For tokens drawn from old,

        E_old[k1] = KL(old‖ref) − KL(old‖π),
        E_old[k3] = KL(old‖ref) − KL(old‖π) + E_old[ref/π] − 1.

    Weighted by ρ = π/old, E_old[ρ·k1] = E_old[ρ·k3] = KL(π‖ref).

Conditions:
    old > 0 wherever π > 0. One token, or whole sequences with the ratio of the sequence. From
    the second epoch of a batch on, and whenever the sampler is not the trainer, this is so.

Proof:
    log(π/ref) = log(old/ref) − log(old/π); take E_old. k3 = k1 + ref/π − 1. E_old[ρ·x] = E_π[x].

Refutes:
    "The logged k3 is KL(π‖ref), or at least KL(old‖ref)": here it is .4525, and they are .4239
    and .2104. "k1 has at least the right mean": it is .1707, and if ref is old, it is negative.

Sources:
    * Zhang et al., "On the Design of KL-Regularized Policy Gradient Algorithms for LLM
      Reasoning", arXiv:2505.17508, on the missing weight in GRPO's KL term (abstract seen)
    * The decompositions (derived here)
"""

from __future__ import annotations

from rlproof.lab.claims._b_shared import moved
from rlproof.lab.claims.model import Number, number
from rlproof.lab.divergences import estimate, kl
from rlproof.lab.fixtures import p4, p4_ref2, tree_of

SUM = "sum over the four arms"


def numbers() -> tuple[Number, ...]:
    """P4 moved by one update, against ref2; and sequences of TREE drawn from its reference."""
    old, new, ref = p4().policy, moved(), p4_ref2().held_to
    tree, other = tree_of(0, spread=0.5), tree_of(1, spread=0.5).policy
    reweighted = [
        estimate(k, new, ref, drawn=old, gradient="ratio-weighted").mean for k in ("k1", "k3")
    ]
    sequences = estimate("k3", tree.policy, tree.held_to, drawn=other, level="sequence",
                         gradient="ratio-weighted").mean  # fmt: skip
    return (
        number("E_old[k1], E_old[k2], E_old[k3], old = P4, ref2",
               [estimate(k, new, ref, drawn=old).mean for k in ("k1", "k2", "k3")],
               (0.170686, 0.451301, 0.452506), 1e-6, SUM),
        number("KL(π‖ref), said to be estimated", kl(new, ref), 0.423917, 1e-6, SUM),
        number("KL(old‖ref), said to be estimated", kl(old, ref), 0.210363, 1e-6, SUM),
        number("E_old[k1] − KL(old‖ref) + KL(old‖π)",
               estimate("k1", new, ref, drawn=old).mean - kl(old, ref) + kl(old, new), 0.0, 1e-12,
               "proof"),
        number("E_old[ρ·k1], E_old[ρ·k3]", reweighted, (0.423917, 0.423917), 1e-6, "KL(π‖ref)"),
        number("E_old[k1] if ref is old", estimate("k1", new, old, drawn=old).mean, -0.039677,
               1e-6, "−KL(old‖π)"),
        number("E_old[k3] if ref is old", estimate("k3", new, old, drawn=old).mean, 0.044625,
               1e-6, "χ²(old‖π) − KL(old‖π)"),
        number("E_old[ρ·k3] − KL(π‖ref) of whole sequences, TREE drawn from another tree",
               sequences - kl(tree.policy, tree.held_to), 0.0, 1e-12, "E_old[ρ·x] = E_π[x]"),
    )  # fmt: skip
