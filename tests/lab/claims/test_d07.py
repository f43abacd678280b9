"""D7 by all pairs of completions, counted by their hits."""

from fractions import Fraction
from itertools import product
from math import comb, exp

import pytest

from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import P4_LOGITS

P = exp(P4_LOGITS[0]) / sum(map(exp, P4_LOGITS))


def completions(lengths):
    """(length, hits, probability, E[s | hits] over ∇π₀) of one prompt."""
    return [
        (n, h, share * comb(n, h) * P**h * (1 - P) ** (n - h), (h - n * P) / (P * (1 - P)))
        for n, share in lengths.items()
        for h in range(n + 1)
    ]


def coefficients(divisor, *prompts):
    """E[Σ_i (r_i − r̄)·s_i·weight] over ∇V_p, G = 2 completions of each prompt."""
    found = []
    for own in range(len(prompts)):
        total = 0.0
        for rows in product(*(completions(prompt) for prompt in prompts for _ in range(2))):
            chance, tokens = 1.0, sum(row[0] for row in rows)
            for row in rows:
                chance *= row[2]
            pair = rows[2 * own : 2 * own + 2]
            gap = pair[0][1] / pair[0][0] - pair[1][1] / pair[1][0]
            for sign, row in zip((0.5, -0.5), pair, strict=True):
                total += chance * sign * gap * row[3] * divisor(row[0], tokens, len(rows))
        found.append(total)
    return found


DIVISORS = {
    "token-mean": lambda _, tokens, __: 1 / tokens,
    "sequence-mean": lambda own, _, rows: 1 / (own * rows),
    "constant-per-sequence": lambda _, __, rows: 1 / (5 * rows),
}


@pytest.mark.parametrize("lengths", [(1, 1), (1, 4), (2, 3)])
@pytest.mark.parametrize("name", DIVISORS)
def test_two_prompts_of_fixed_length(name, lengths):
    found = {n.name: n.value for n in find("D7").numbers()}
    key = f"coefficients of ∇V₁, ∇V₂, {name}, lengths {lengths[0]} and {lengths[1]}"
    right = coefficients(DIVISORS[name], *({n: 1.0} for n in lengths))
    assert found[key] == pytest.approx(right, abs=1e-12)


def test_one_prompt_alone_and_one_of_random_length():
    found = {n.name: n.value for n in find("D7").numbers()}
    mean = DIVISORS["token-mean"]
    alone = [coefficients(mean, {n: 1.0})[0] for n in (1, 4)]
    assert found["the same prompt alone, token mean, lengths 1 and 4"] == pytest.approx(alone)
    four = coefficients(mean, *({1: 1.0} for _ in range(4)))
    assert found["each of four prompts of length 1, token mean"] == pytest.approx(four, abs=1e-12)
    beside = [coefficients(mean, {1: 0.5, 3: 0.5}, {n: 1.0})[0] for n in (1, 5)]
    name = "lengths 1 or 3 by chance, beside a prompt of length 1, then of length 5"
    assert found[name] == pytest.approx(beside, abs=1e-12)


def test_the_identity_in_fractions():
    found = {n.name: n.value for n in find("D7").numbers()}
    lengths = (2, 1, 5, 4)
    weights = [
        Fraction(share, 12) * Fraction(1, share) * (t < length)
        for length, share in zip(lengths, (3, 3, 9, 9), strict=True)
        for t in range(5)
    ]
    assert found["slot weights, lengths (2, 1) and (5, 4)"] == pytest.approx(
        [float(w) for w in weights]
    )
