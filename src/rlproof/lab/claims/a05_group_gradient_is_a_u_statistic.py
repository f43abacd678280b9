"""A5. The leave-one-out gradient is a U-statistic, so its variance has a closed form.

Statement:
    With the kernel h(i, j) = (r_i − r_j)·(s_i − s_j)/2, the leave-one-out gradient is the mean
    of h over all pairs of the group, and its total variance is

        Var[ĝ] = 2/(G·(G−1))·(2·(G−2)·ζ₁ + ζ₂),

        ζ₁ = Var[(R − V)·s]/4,    ζ₂ = Var[h(1, 2)].

    The estimator that knows V has the variance 4·ζ₁/G. The ratio of the two is

        ((G−2) + ζ₂/(2·ζ₁))/(G − 1),

    which tends to 1: a large group loses nothing for not knowing V.

Conditions:
    i.i.d. completions, no division by a standard deviation, G ≥ 2 and ζ₁ > 0. Var is the trace
    of the covariance. V is not the best baseline (A2), so the variance of the estimator that
    knows V is no lower bound.

Proof:
    Σ_{i<j} (r_i − r_j)(s_i − s_j) = G·Σ_i (r_i − r̄)·s_i; dividing by G·(G−1) gives
    leave-one-out (A4). Two pairs are independent unless they share a member; sharing one, their
    covariance is that of E[h | o₁] = ((R − V)·s + ∇V)/2, which is ζ₁. Of the C(G,2) pairs each
    shares a member with 2·(G−2) others and both members with itself.

Refutes:
    "The group mean has a smaller variance than leave-one-out, even than knowing V": only because
    it is ((G−1)/G) times as long; at equal length it has the same.

Sources:
    * Zhou et al., "Demystifying Group Relative Policy Optimization: Its Policy Gradient is a
      U-Statistic", arXiv:2603.01162 (abstract seen)
"""

from __future__ import annotations

from rlproof.lab.claims._a_shared import GROUP_MEAN, LEAVE_ONE_OUT, PLAIN
from rlproof.lab.claims.model import Number, number
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import p4

SIZES = (2, 3, 4, 6)
PAIRS = "plain sum over the ordered groups of P4"


def zetas() -> tuple[float, float]:
    """ζ₁ and ζ₂ of P4."""
    knows_v = p4().but(rewards=p4().rewards - p4().value)
    one = moments(PLAIN, knows_v, 1).total_variance
    return one / 4, moments(LEAVE_ONE_OUT, p4(), 2).total_variance


def closed_form(size: int, first: float, second: float) -> float:
    """Total variance of leave-one-out."""
    return 2 / (size * (size - 1)) * (2 * (size - 2) * first + second)


def numbers() -> tuple[Number, ...]:
    """Variances by enumeration, by the closed form, and against the estimator that knows V."""
    knows_v = p4().but(rewards=p4().rewards - p4().value)
    loo = [moments(LEAVE_ONE_OUT, p4(), size).total_variance for size in SIZES]
    oracle = [moments(PLAIN, knows_v, size).total_variance for size in SIZES]
    raw = [moments(GROUP_MEAN, p4(), size).total_variance for size in SIZES]
    first, second = zetas()
    formula = [closed_form(size, first, second) for size in SIZES]
    ratio = [x / y for x, y in zip(loo, oracle, strict=True)]
    limit = [((g - 2) + second / (2 * first)) / (g - 1) for g in SIZES]
    at = "P4, G = 2, 3, 4, 6"
    return (
        number("ζ₁ and ζ₂, P4", (first, second), (0.015970, 0.088096), 1e-6, PAIRS),
        number(f"variance of leave-one-out, {at}", loo, (0.088096, 0.040012, 0.025329, 0.014390),
               1e-6, PAIRS),
        number(f"the same by the closed form, {at}", formula, loo, 1e-13, "U-statistic"),
        number(f"variance knowing V, {at}", oracle, (0.031939, 0.021293, 0.015970, 0.010646),
               1e-6, PAIRS),
        number(f"ratio of the two, {at}", ratio, (2.7582, 1.8791, 1.5861, 1.3516), 5e-5, PAIRS),
        number(f"ratio by the closed form, {at}", limit, ratio, 1e-10, "U-statistic"),
        number("ratio at G = 1000, P4", (998 + second / (2 * first)) / 999, 1.001760, 1e-6,
               "closed form, ζ₂/(2ζ₁) = 2.758226"),
        number(f"variance of the raw group mean, said to be better, {at}", raw,
               (0.022024, 0.017783, 0.014248, 0.009993), 1e-6, PAIRS),
        number(f"the same times (G/(G−1))², {at}",
               [x * (g / (g - 1)) ** 2 for x, g in zip(raw, SIZES, strict=True)], loo, 1e-13,
               "the lengths made equal"),
    )  # fmt: skip
