"""B1. Drawn from π, k1 and k3 estimate KL(π‖ref) without bias; k2 is off by the third order.

Statement:
    With r = ref/π, k1 = −log r, k2 = (log r)²/2 and k3 = r − 1 − log r, tokens drawn from π:

        E[k1] = E[k3] = KL(π‖ref),    KL(π‖ref) − E[k2] = E[(log r)³]/6 + …

Conditions:
    Tokens come from π itself (B10, B16), and ref > 0 only where π > 0: else E[r] < 1 and k3 is
    too small. This is about values; gradients are another matter (B4 to B9).

Proof:
    E[−log r] is the definition of KL(π‖ref). E_π[r] = Σ ref = 1, so r − 1 adds 0 in expectation.
    With x = log r, 1 = E[eˣ] = 1 + E[x] + E[x²]/2 + E[x³]/6 + …, and −E[x] is the divergence.

Refutes:
    "k2 is biased, but only a little": with π uniform and ref = (.97, .01, .01, .01) it gives
    twice the divergence. "k3 estimates KL(ref‖π)": its value does not; only its gradient as a
    loss is that of KL(ref‖π).

Sources:
    * Schulman, "Approximating KL Divergence", joschu.net/blog/kl-approx.html (formula seen)
    * Shao et al., "DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language
      Models", arXiv:2402.03300, which uses k3 (from memory)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.claims._b_shared import peaked, uniform
from rlproof.lab.claims.model import Number, number
from rlproof.lab.divergences import estimate, kl
from rlproof.lab.fixtures import REF2_LOGITS, p4
from rlproof.lab.policies import Policy, bandit

SMALL = 1e-3


def numbers() -> tuple[Number, ...]:
    """Means near and far, in both directions, and the order of k2's bias."""
    flat, far, policy = uniform(), peaked(0.01), p4().policy
    return (
        *_means("P4, ref uniform", policy, flat, (0.141244, 0.137656, 0.141244)),
        *_means("π = (.97, .01, .01, .01), ref uniform", far, flat, (1.218594, 1.046988, 1.218594)),
        *_means("π uniform, ref = (.97, .01, .01, .01)", flat, far, (2.075198, 4.115222, 2.075198)),
        number("KL(ref‖π), said to be what k3 estimates, P4", kl(flat, policy), 0.151044, 1e-6,
               "Σ ref·log(ref/π)"),
        number("(KL − E[k2])/δ³ at logits δ·(0, .8, −.3, .2), δ = .001", _bias(SMALL) / SMALL**3,
               -third_moment() / 6, 1e-3, "−m₃/6, m₃ the third central moment; the rest is O(δ)"),
    )  # fmt: skip


def _means(
    where: str, policy: Policy, reference: Policy, expected: tuple[float, ...]
) -> tuple[Number, ...]:
    means = [estimate(k, policy, reference).mean for k in ("k1", "k2", "k3")]
    return (
        number(f"E[k1], E[k2], E[k3], {where}", means, expected, 1e-6, "sums over the four arms"),
        number(f"E[k3] − KL(π‖ref), {where}", means[2] - kl(policy, reference), 0.0, 1e-12,
               "proof"),
    )  # fmt: skip


def _bias(scale: float) -> float:
    policy = bandit(4).at(scale * np.array(REF2_LOGITS))
    return kl(policy, uniform()) - estimate("k2", policy, uniform()).mean


def third_moment() -> float:
    """Third central moment of the logits (0, .8, −.3, .2) under equal weights."""
    apart = np.array(REF2_LOGITS) - np.mean(REF2_LOGITS)
    return float(np.mean(apart**3))
