"""E3. Log-probs in bfloat16 make ratios wrong by percents, or exactly 1 where they are not.

Statement:
    With p significant bits, log-probs of size 2^k ≤ |x| < 2^(k+1) are rounded by half an ulp,
    u = 2^(k+1−p). The ratio exp(new − old) is then off by a factor of up to

        exp(u),

    and if new − old = δ is normal with a deviation σ ≪ u, the ratio is exactly 1 with probability
    1 − σ·√(2/π)/u.

Conditions:
    Both log-probs are stored in that format and lie in one binade, their position between two
    neighbours is uniform. bfloat16 has p = 8, float16 11, float32 24.

Proof:
    Each of the two log-probs moves by u/2 at most, so the log-ratio moves by u. Two numbers δ
    apart round to the same neighbour unless a midpoint lies between them: probability |δ|/u,
    and E|δ| = σ·√(2/π).

Refutes:
    "bf16 has the range of float32, so it is fine for log-probs": at log π = −10 it has a step of
    .0625, and two steps fit under a clip of .2. "Four of five small ratios become 1": 80 % holds
    for tokens with log π in (−1, −.5]; at −5 it is 97 %.

Sources:
    * Qi et al., "Defeating the Training-Inference Mismatch via FP16", arXiv:2510.26788
      (abstract seen)
    * The two formulas (derived here)
"""

from __future__ import annotations

from math import exp, pi, sqrt
from statistics import NormalDist

import numpy as np

from rlproof.lab.claims.model import Number, number
from rlproof.lab.policies import Floats

BITS = {"bfloat16": 8, "float16": 11, "float32": 24}
PERCENT = {
    "bfloat16": (3.1743, 6.4494, 13.3148),
    "float16": (0.39139, 0.78431, 1.57477),
    "float32": (0.0000477, 0.0000954, 0.0001907),
}
SIGMA = 0.001


def rounded(values: Floats, bits: int) -> Floats:
    """Values at `bits` significant bits, ties to even; without limits on the exponent."""
    mantissa, exponent = np.frexp(values)
    result: Floats = np.ldexp(np.round(np.ldexp(mantissa, bits)), exponent - bits)
    return result


def spacing(value: float, bits: int) -> float:
    """Distance of neighbours at a value."""
    return float(np.ldexp(1.0, int(np.frexp(value)[1]) - bits))


def numbers() -> tuple[Number, ...]:
    """Worst ratio errors at log π = −5, −10, −20, and how many ratios become 1."""
    shares = [share_of_ones(top, 8) for top in (-0.6, -1.5, -5.0, -20.0)]
    at_five = share_of_ones(-5.0, BITS["float16"])
    expected = [1 - SIGMA * sqrt(2 / pi) / spacing(top, 8) for top in (-0.6, -1.5, -5.0, -20.0)]
    return (
        *(
            number(f"worst ratio error at log π = −5, −10, −20, {name}, %",
                   [100 * (worst_ratio(x, BITS[name]) - 1) for x in (-5.0, -10.0, -20.0)],
                   row, 2e-4 if name != "float32" else 2e-7, "exp(u) − 1")
            for name, row in PERCENT.items()
        ),
        number("P(ratio is exactly 1), σ = .001, bfloat16, log π = −.6, −1.5, −5, −20", shares,
               expected, 1e-3, "1 − σ·√(2/π)/u"),
        number("the same at −.6, said to hold everywhere", shares[0], 0.7957, 1e-3, "u = 1/256"),
        number("the same at −5 in float16", at_five, 0.7957, 1e-3, "u = 1/256"),
        number("log-ratios between 1 and 1.2 that bfloat16 can show at −10", ratios_in_band(),
               2.0, 1e-9, "steps of 1/16 up to log 1.2 = .182"),
    )  # fmt: skip


def worst_ratio(log_prob: float, bits: int) -> float:
    """Computed over true ratio where old is rounded down and new up, each by nearly u/2."""
    u = spacing(log_prob, bits)
    old, new = np.array([log_prob + 0.499999 * u]), np.array([log_prob + 0.500001 * u])
    computed = float((rounded(new, bits) - rounded(old, bits))[0])
    return exp(computed - float((new - old)[0]))


def share_of_ones(log_prob: float, bits: int, positions: int = 1024, draws: int = 256) -> float:
    """Share of pairs that round to the same number: positions in one step, quantiles of δ."""
    u = spacing(log_prob, bits)
    start = float(rounded(np.array([log_prob]), bits)[0])
    old = start + u * (np.arange(positions) + 0.5) / positions
    quantiles = [NormalDist(0, SIGMA).inv_cdf((k + 0.5) / draws) for k in range(draws)]
    new = np.add.outer(old, np.array(quantiles))
    return float((rounded(new, bits) == rounded(old, bits)[:, None]).mean())


def ratios_in_band() -> int:
    """Distinct positive log-ratios up to log 1.2 of numbers around −10."""
    around = np.unique(rounded(np.linspace(-10.5, -9.5, 2001), 8))
    gaps = np.unique(np.subtract.outer(around, around))
    return int(((gaps > 0) & (gaps <= np.log(1.2))).sum())
