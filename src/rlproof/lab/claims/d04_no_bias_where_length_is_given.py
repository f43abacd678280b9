"""D4. Where the environment draws the length, there is no length bias.

Statement:
    If the length does not depend on the policy, E[s | L] = 0, and for every weight w(L)

        E[w(L)·(R − b)·s] = Σ_ℓ P(L = ℓ)·w(ℓ)·∇V_ℓ,    V_ℓ = E[R | L = ℓ].

    If V_ℓ is the same for all ℓ, as for a reward that is the share of hits, this is E[w(L)]·∇V:
    sequence mean, token mean and constant differ in scale alone. The sequence mean's weight is
    (G − 1)/G·E[1/L].

Conditions:
    The environment draws the length. Without equal V_ℓ nothing pushes on the length either, but
    the mixture of ∇V_ℓ may turn. With a standard deviation the directions stay parallel here
    because E[s | L, hits] is a multiple of ∇π₀, whatever the advantage.

Proof:
    P(L) has no θ, so given L the tokens are drawn from π alone and E[s | L] = 0 (A1). Then
    E[R·s | L = ℓ] = ∇V_ℓ. Given h hits among ℓ tokens, the other tokens follow π without token 0,
    so E[s | ℓ, h] = (h − ℓ·π₀)/(1 − π₀) · (e₀ − π), and ∇π₀ = π₀·(e₀ − π).

Refutes:
    "Dividing each completion by its own length biases GRPO": only if the policy can choose the
    length. In a trainer that draws it, as the tiny trainer here does, E[s/L] = 0.

Sources:
    * The condition (derived here)
    * Liu et al., "Understanding R1-Zero-Like Training: A Critical Perspective",
      arXiv:2503.20783, for the sentence that needs it (abstract seen)
"""

from __future__ import annotations

from rlproof.lab.calculus import compare
from rlproof.lab.claims._d_shared import CENTRED, NORMALISED, ascent
from rlproof.lab.claims.model import Number, number
from rlproof.lab.fixtures import seed
from rlproof.space.advantages import Advantage

THREE = ("sequence-mean", "token-mean", "constant-per-sequence")
SUMS = "sum over lengths and hits of each completion"
WEIGHTS = {
    (2, "no std"): (0.228333, 0.192746, 0.1),
    (4, "no std"): (0.3425, 0.266594, 0.15),
    (2, "std"): (0.792908, 0.644219, 0.368762),
    (4, "std"): (1.157209, 0.910992, 0.533082),
}


def numbers() -> tuple[Number, ...]:
    """E[s/L], and E[ĝ]/∇V of the three on SEED, with and without a standard deviation."""
    task = seed()
    policy, lengths_N = task.policy, task.policy.family.lengths
    mean_score = policy.expect(policy.scores / lengths_N[:, None])
    share = compare(policy.gradient(task.rewards / lengths_N), task.gradient)
    return (
        number("E[s/L]", mean_score, (0.0,) * 4, 1e-12, "proof"),
        number("E[(R/L)·s]/∇V", share.ratios, (137 / 300,) * 4, 1e-12, "E[1/L] = 137/300"),
        number(
            "E[ĝ]/∇V of each coordinate, sequence mean, G = 4",
            compare(ascent("sequence-mean", task, 4), task.gradient).ratios,
            (0.75 * 137 / 300,) * 4,
            1e-12,
            "(G−1)/G·E[1/L]",
        ),
        *(
            row
            for (size, name), weights in WEIGHTS.items()
            for row in _row(size, CENTRED if name == "no std" else NORMALISED, name, weights)
        ),
    )


def _row(
    size: int, advantage: Advantage, name: str, weights: tuple[float, ...]
) -> tuple[Number, Number]:
    found = [compare(ascent(one, seed(), size, advantage), seed().gradient) for one in THREE]
    what = f"sequence mean, token mean, constant, {name}, G = {size}"
    return (
        number(f"E[ĝ]/∇V: {what}", [c.scale for c in found], weights, 1e-6, SUMS),
        number(f"cosine with ∇V: {what}", [c.cosine for c in found], (1.0,) * 3, 1e-12, "proof"),
    )
