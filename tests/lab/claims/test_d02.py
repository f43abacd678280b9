"""D2 by plain sums over the 364 sequences, and by differences of those sums."""

from math import sqrt

import pytest
from tests.support.end_token import LOGITS, types

from rlproof.lab.claims.registry import find


def expected(weight, logits=LOGITS):
    return sum(chance * weight(*key) for key, (chance, _) in types(logits).items())


def with_scores(weight, logits=LOGITS):
    return [sum(weight(*key) * s[v] for key, (_, s) in types(logits).items()) for v in range(4)]


def slopes(function, h=1e-5):
    """Rows are coordinates of θ."""
    rows = []
    for v in range(4):
        up, down = list(LOGITS), list(LOGITS)
        up[v] += h
        down[v] -= h
        high, low = function(up), function(down)
        if isinstance(high, float):
            high, low = [high], [low]
        rows.append([(a - b) / (2 * h) for a, b in zip(high, low, strict=True)])
    return rows


def test_the_mean_score_and_the_fixed_baseline():
    found = {n.name: n.value for n in find("D2").numbers()}
    mean_score = with_scores(lambda length, _: 1 / length)
    assert found["E[s/L]"] == pytest.approx(mean_score, abs=1e-13)
    assert found["E[s/L] against ∇E[1/L]"] == pytest.approx(mean_score, abs=1e-13)
    by_differences = slopes(lambda z: expected(lambda length, _: 1 / length, z))
    assert mean_score == pytest.approx([row[0] for row in by_differences], abs=1e-9)
    fixed = with_scores(lambda length, reward: (reward - 0.25) / length)
    assert found["E[ĝ] with the fixed baseline .25"] == pytest.approx(fixed, abs=1e-13)


def test_the_rotation():
    """J of the field by differences; the relative rotation does not see (G−1)/G = ½."""
    found = {n.name: n.value for n in find("D2").numbers()}

    def field(logits, power):
        value = expected(lambda _, reward: reward, logits)
        return with_scores(lambda length, reward: (reward - value) / length**power, logits)

    def relative(power):
        j = slopes(lambda z: field(z, power))
        odd = [[j[a][b] - j[b][a] for b in range(4)] for a in range(4)]
        even = [[j[a][b] + j[b][a] for b in range(4)] for a in range(4)]
        sizes = [sqrt(sum(x * x for row in m for x in row)) for m in (odd, even)]
        return odd, sizes[0] / sizes[1]

    odd, size = relative(1)
    assert found["|∂F − ∂Fᵀ|/|∂F + ∂Fᵀ| of GRPO"] == pytest.approx(size, abs=1e-8)
    transposed = [0.5 * odd[b][a] for a in range(4) for b in range(4)]
    assert found["∂F − ∂Fᵀ of GRPO, G = 2"] == pytest.approx(transposed, abs=1e-8)
    assert relative(0)[1] == pytest.approx(0, abs=1e-8)
    assert found["the same with a constant divisor"] == pytest.approx(0, abs=1e-8)
