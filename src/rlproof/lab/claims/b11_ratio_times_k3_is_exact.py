"""B11. ρ·k3 with the gradient through ρ gives ∇KL(π‖ref), even where ρ is 1; sg(ρ)·k3 doesn't.

Statement:
    For tokens of old and ρ = π/old, E_old[ρ·d] = E_π[d] for every π, so its gradient is ∇E_π[d].
    For d = k1 or k3 that is ∇KL(π‖ref), on-policy and off-policy. With ρ held constant,

        E_old[sg(ρ)·∇k3] = ∇KL(ref‖π),        E_old[sg(ρ)·∇k2] = ∇KL(π‖ref).

    At ρ = 1 the slope of ρ·k3 is (1 − r) + k3 = log(π/ref), that of k2, token by token.

Conditions:
    old > 0 wherever π > 0. One token, or the ratio of the whole row, a product, times Σ_t k3_t.
    Token ratios leave what k2 leaves out (B6); off-policy they also visit prefixes as old does.

Proof:
    Differentiate E_old[ρ·d] = Σ π·d. For d = k1, k3 it is KL(π‖ref) for all π (B1). With ρ held
    constant it is E_π[∇d], so B4 and B5 apply. ∂(ρ·k3) = ρ·(k3 + 1 − r) = −ρ·log r.

Refutes:
    "At ρ = 1 the factor changes nothing": it turns the gradient of KL(ref‖π) into that of
    KL(π‖ref). "A geometric-mean ratio of the row corrects as well": on SEED, where token ratios
    are exact, it is 5 % off.

Sources:
    * DeepSeek-AI, "DeepSeek-V3.2: Pushing the Frontier of Open Large Language Models",
      arXiv:2512.02556, the formula as quoted in huggingface/trl issue #4637 (formula seen)
    * huggingface/trl pull request #6503, on the gradient at ratio 1, and issue #6586, on the
      broadcast of a ratio of the row (formula seen)
    * The product ratio of the row (derived here)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.calculus import compare
from rlproof.lab.claims._b_shared import descends, moved, penalty
from rlproof.lab.claims.model import Number, number
from rlproof.lab.divergences import estimate, kl_gradient_first
from rlproof.lab.fixtures import p4, p4_ref2, seed, tree_of
from rlproof.lab.policies import Floats, Policy
from rlproof.space.divergences import divergence

RIGHT = "closed form π·(log(π/ref) − KL)"


def numbers() -> tuple[Number, ...]:
    """One token on-policy and off-policy, with ρ attached and held; then whole sequences."""
    old, new, ref = p4().policy, moved(), p4_ref2().held_to
    right = (0.397545, -0.236188, -0.050455, -0.110902)
    on_policy = estimate("k3", old, ref).gradient
    slope = divergence(old.log_table[0], ref.log_table[0], "k3", "ratio-weighted", np.ones(4))[1]
    return (
        number("∇(ρ·k3), on-policy, π = P4 moved, ref2", weighted("k3", new, ref), right, 1e-6,
               RIGHT),
        number("∇(ρ·k3), off-policy, old = P4", weighted("k3", new, ref, old), right, 1e-6, RIGHT),
        number("∇(ρ·k1), off-policy", weighted("k1", new, ref, old), right, 1e-6, RIGHT),
        number("∇k3 without ρ, off-policy", estimate("k3", new, ref, drawn=old).gradient,
               (0.468725, -0.279805, 0.061618, -0.250538), 1e-6, "E_old[(1 − ref/π)·s]"),
        number("sg(ρ)·∇k3, off-policy", held("k3", new, ref, old),
               (0.389919, -0.235041, 0.015998, -0.170876), 1e-6, "π − ref"),
        number("sg(ρ)·∇k2, off-policy", held("k2", new, ref, old), right, 1e-6, RIGHT),
        number("slope of ρ·k3 at ρ = 1, at each token of P4", slope,
               old.log_table[0] - ref.log_table[0], 1e-12, "log(π/ref), the slope of k2"),
        number("|∇k3 − ∇(ρ·k3)| / |∇(ρ·k3)| on-policy, P4 against ref2, said to be 0",
               compare(on_policy, kl_gradient_first(old, ref)).relative_error, 0.166689, 1e-6,
               "closed forms"),
        *_sequences(),
    )  # fmt: skip


def weighted(name: str, policy: Policy, reference: Policy, old: Policy | None = None) -> Floats:
    """E_old[∇(ρ·d)]."""
    found = estimate(name, policy, reference, drawn=old, gradient="ratio-weighted")
    return found.gradient


def held(name: str, policy: Policy, reference: Policy, old: Policy) -> Floats:
    """E_old[ρ·∇d] with ρ held constant."""
    slope_N = divergence(policy.sequence_logps, reference.sequence_logps, name)[1]
    ratio_N = policy.probs / old.probs
    gradient: Floats = old.expect((ratio_N * slope_N)[:, None] * policy.scores)
    return gradient


def _sequences() -> tuple[Number, ...]:
    tree, tokens = tree_of(0, spread=0.5), seed()
    right = kl_gradient_first(tree.policy, tree.held_to)
    away = tree.but(behaviour=tree_of(1, spread=0.5).policy)
    of_row = penalty("k3", gradient="level-weighted").but(ratio="sequence-sum")
    geometric = of_row.but(ratio="sequence-mean")
    by_token = weighted("k3", tree.policy, tree.held_to)
    rows = [
        compare(g, kl_gradient_first(tokens.policy, tokens.held_to)).relative_error
        for g in (weighted("k3", tokens.policy, tokens.held_to), descends(geometric, tokens))
    ]
    return (
        number("product ratio of the row times Σ_t k3, TREE, on-policy", descends(of_row, tree),
               right, 1e-12, "E[log(π/ref)·s]"),
        number("the same drawn from another tree", descends(of_row, away), right, 1e-12,
               "E[log(π/ref)·s]"),
        number("token ratios, TREE, on-policy: cosine", compare(by_token, right).cosine, 0.990655,
               1e-6, "recursion over the prefixes"),
        number("relative error on SEED: token ratios, geometric mean of the row", rows,
               (0.0, 0.054641), 1e-6, "sums over lengths and counts"),
    )  # fmt: skip
