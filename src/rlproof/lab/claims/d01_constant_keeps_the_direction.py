"""D1. Of the three aggregations only the constant keeps the direction of ∇V.

Statement:
    Where the policy chooses the length L_i of a completion, with s_i = ∇log π(o_i),

        constant L_max:   E[ĝ] = (G − 1)/G/L_max · ∇V,

        sequence mean:    E[ĝ] = (G − 1)/G · E[(R − V)·s/L],

        token mean:       E[ĝ] = E[Σ_i (r_i − r̄)·s_i / Σ_j L_j].

    Only the first is parallel to ∇V in general. The third turns into it as G → ∞.

Conditions:
    On-policy, advantages r − r̄ without a standard deviation. Any denominator that does not
    depend on the completions will do for the first. Where the environment draws the length, all
    three are parallel (D4).

Proof:
    The constant leaves the plain sum of (A3). For the sequence mean, completions j ≠ i are
    independent of i, so E[r_j·s_i/L_i] = V·E[s/L], and the own term gives E[R·s/L]/G. The weight
    1/L correlates with R and s, which turns the sum. In the token mean, L_i is 1/G of the
    denominator, which is G·E[L] + O(√G): what is left of the correlation is O(1/G).

Refutes:
    "Token mean (DAPO) removes the length bias": it makes it small, cosine .99800, .99923,
    .99979 at G = 2, 4, 8, not zero. "Dr. GRPO is only another learning rate": sequence mean
    stands at 23.5° to ∇V here.

Sources:
    * Liu et al., "Understanding R1-Zero-Like Training: A Critical Perspective",
      arXiv:2503.20783 (abstract seen)
    * Yu et al., "DAPO: An Open-Source LLM Reinforcement Learning System at Scale",
      arXiv:2503.14476 (from memory)
"""

from __future__ import annotations

from rlproof.lab.calculus import compare
from rlproof.lab.claims._d_shared import ascent
from rlproof.lab.claims.model import Number, number
from rlproof.lab.fixtures import eos

LENGTHS_AND_REWARDS = "convolution over the lengths and rewards of the others"


def numbers() -> tuple[Number, ...]:
    """E[ĝ] against ∇V on EOS: 364 sequences, the policy decides when to stop."""
    task = eos()
    policy, lengths_N = task.policy, task.policy.family.lengths
    constant, by_token, by_sequence = (
        compare(ascent(name, task, 4), task.gradient)
        for name in ("constant-per-sequence", "token-mean", "sequence-mean")
    )
    formula = 0.75 * policy.gradient((task.rewards - task.value) / lengths_N)
    cosines = [compare(ascent("token-mean", task, size), task.gradient).cosine for size in (2, 8)]
    weighted = "closed form (G−1)/G·E[(R−V)·s/L]"
    return (
        number("E[ĝ]/∇V, constant, G = 4", constant.ratios, (0.15,) * 4, 1e-12, "(G−1)/G/5"),
        number("cosine with ∇V, constant, G = 4", constant.cosine, 1.0, 1e-12, "proof"),
        number(
            "E[ĝ]/∇V, token mean, G = 4",
            by_token.ratios,
            (0.224719, 0.209667, 0.209667, 0.243927),
            1e-6,
            LENGTHS_AND_REWARDS,
        ),
        number(
            "cosine with ∇V, token mean, G = 2, 4, 8",
            (cosines[0], by_token.cosine, cosines[1]),
            (0.998003, 0.999234, 0.999785),
            1e-6,
            LENGTHS_AND_REWARDS,
        ),
        number("cosine with ∇V, sequence mean", by_sequence.cosine, 0.916953, 1e-6, weighted),
        number("its angle, degrees", by_sequence.degrees, 23.515, 1e-3, weighted),
        number(
            "E[ĝ], sequence mean, G = 4", ascent("sequence-mean", task, 4), formula, 1e-12, weighted
        ),
    )
