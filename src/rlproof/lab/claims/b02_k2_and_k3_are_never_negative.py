"""B2. k2 and k3 are at least 0 for every single token; k1 is not.

Statement:
    k2 ≥ 0 and k3 ≥ 0 whatever the token, with 0 only where π = ref. k1 = log π − log ref is
    negative for every token that the policy makes less likely than the reference does.

Conditions:
    Exact arithmetic. r − 1 − log r in float32 rounds below 0 near r = 1; expm1(log r) − log r
    does not lose those digits.

Proof:
    k2 is half a square. x − 1 − log x has the derivative 1 − 1/x, so its minimum is 0, at x = 1.

Refutes:
    "A negative KL in the log is a bug": the mean of a few k1 is negative quite often, 22 % of
    the time for 8 tokens of P4. For k3 it is one. "k3 ≥ 0, so k3 in the loss can only pull a
    token down": its slope 1 − r has either sign.

Sources:
    * Schulman, "Approximating KL Divergence", joschu.net/blog/kl-approx.html (formula seen)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.claims._b_shared import uniform
from rlproof.lab.claims.model import Number, number
from rlproof.lab.fixtures import p4
from rlproof.lab.groups import groups_of
from rlproof.lab.policies import Floats
from rlproof.space.divergences import k1, k2, k3

TOKENS = 8


def numbers() -> tuple[Number, ...]:
    """Every token of P4, a wide range of ratios, and how often a mean is negative."""
    new, ref = p4().policy.log_table[0], uniform().log_table[0]
    gaps = np.linspace(-20, 20, 4001)
    zero = np.zeros_like(gaps)
    lowest = [float(k(gaps, zero)[0].min()) for k in (k2, k3)]
    return (
        number("k1 of the four tokens of P4", k1(new, ref)[0],
               (0.598955, 0.098955, -0.401045, -0.901045), 1e-6, "log 4π"),
        number("k2 of the four tokens of P4", k2(new, ref)[0],
               (0.179373, 0.004896, 0.080419, 0.405941), 1e-6, "(log 4π)²/2"),
        number("k3 of the four tokens of P4", k3(new, ref)[0],
               (0.148341, 0.004739, 0.092339, 0.561129), 1e-6, "1/(4π) − 1 + log 4π"),
        number("lowest k2 and k3 for log(π/ref) from −20 to 20", lowest, (0.0, 0.0), 1e-12,
               "proof: the minimum, at π = ref"),
        number("lowest k1 there", float(k1(gaps, zero)[0].min()), -20.0, 1e-12, "log(π/ref)"),
        number("P(k1 < 0), P4", float(p4().policy.probs[2:].sum()), 0.268941, 1e-6, "π₂ + π₃"),
        number("P(mean of 8 k1 < 0), P4", _negative_means(k1(new, ref)[0]), 0.220106, 1e-6,
               "enumeration over 165 multisets of tokens"),
        number("P(mean of 8 k3 < 0), P4", _negative_means(k3(new, ref)[0]), 0.0, 1e-12, "proof"),
        number("slopes of k3 at the four tokens of P4, said to pull down only",
               k3(new, ref)[1], (0.450615, 0.094217, -0.493383, -1.462173), 1e-6, "1 − 1/(4π)"),
    )  # fmt: skip


def _negative_means(values: Floats) -> float:
    groups = groups_of(p4().policy.probs, TOKENS)
    return float(groups.weights[values[groups.members].mean(axis=1) < -1e-12].sum())
