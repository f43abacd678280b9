"""E10. A ratio of products underflows where the exponential of a difference is exact.

Statement:
    For T tokens of log-prob ℓ_t under the new and ℓ′_t under the old policy,

        Π exp(ℓ_t) / Π exp(ℓ′_t) = exp(Σ_t (ℓ_t − ℓ′_t))

    on paper. In double precision the products are 0 once Σ ℓ_t < −745.2, in single precision
    once it is < −104, and the quotient is 0/0; the right side only needs the difference to be
    moderate.

Conditions:
    Whole sequences, or anything else that multiplies many probabilities. A single token's
    probability does not underflow in practice.

Proof:
    The smallest positive double is 2^−1074; what is below half of it, exp(−745.13…), rounds to 0.
    For single precision it is 2^−149 and exp(−103.97…).

Refutes:
    "A probability is never zero, so the quotient is safe": 600 tokens at −1.4, an ordinary
    answer, give exp(−840) = 0. In single precision 75 tokens are enough.

Sources:
    * IEEE 754 double and single precision (from memory)
    * The lengths (derived here)
"""

from __future__ import annotations

import math

import numpy as np

from rlproof.lab.claims.model import Number, number
from rlproof.lab.policies import stateless

TOKENS, NEW, OLD = 600, -1.399, -1.4


def numbers() -> tuple[Number, ...]:
    """Products, the ratio both ways, and how many tokens it takes."""
    log_ratios = np.full(TOKENS, NEW) - np.full(TOKENS, OLD)
    policies = [stateless(4, (0.0,) * 4 + (1.0,)).at(z) for z in ((0.2, 0, -0.1, -0.3), (0.0,) * 4)]
    new, old = (policy.sequence_logps for policy in policies)
    by_products = policies[0].probs / policies[1].probs
    return (
        number("Π exp(−1.4) over 600 tokens", math.prod([math.exp(OLD)] * TOKENS), 0.0, 1e-300,
               "exp(−840) < 2^−1075"),
        number("the ratio in log space", float(np.exp(log_ratios.sum())), 1.8221188, 1e-7,
               "e^.6"),
        number("shortest product of exp(−1.4) that is 0, double", underflow(np.float64), 533,
               1e-9, "⌈1075·log 2/1.4⌉"),
        number("the same in single precision", underflow(np.float32), 75, 1e-9,
               "⌈150·log 2/1.4⌉"),
        number("both ways on 1,024 short sequences, largest gap",
               float(np.abs(np.exp(new - old) / by_products - 1).max()), 0.0, 1e-14, "identity"),
    )  # fmt: skip


def underflow(kind: type[np.float64] | type[np.float32]) -> int:
    """Factors exp(−1.4) until the product is 0."""
    with np.errstate(under="ignore"):
        factor, product, count = kind(math.exp(OLD)), kind(1), 0
        while product > 0:
            product, count = product * factor, count + 1
    return count
