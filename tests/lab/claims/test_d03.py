"""D3 by plain sums over lengths and rewards, and by many small Euler steps."""

from itertools import product
from math import comb, exp, sqrt

import pytest

from rlproof.lab.claims.registry import find

LOGITS = (0.2, 0.0, -0.1, -0.3)
ENDED = 3


def types(logits):
    """(length, reward) to [probability, probability times score], by counting.

    Reward 1 is a token 0 in the first two slots. Whatever is not counted is summed over.
    """
    total = sum(map(exp, logits))
    p = [exp(z) / total for z in logits]
    found = {}

    def add(length, reward, slots):
        """`slots`: the tokens allowed in each slot, by set."""
        chances = [sum(p[v] for v in allowed) for allowed in slots]
        chance = 1.0
        for c in chances:
            chance *= c
        own = found.setdefault((length, reward), [0.0, [0.0] * 4])
        own[0] += chance
        for v in range(4):
            hits = sum(p[v] / c for allowed, c in zip(slots, chances, strict=True) if v in allowed)
            own[1][v] += chance * (hits - length * p[v])

    going, others, end = {0, 1, 2}, {1, 2}, {ENDED}
    for length in range(1, 6):
        last = [end] if length < 5 else [going | end]
        for first in product(({0}, others), repeat=min(length - 1, 2)):
            middle = [going] * max(length - 3, 0)
            slots = [*first, *middle, *last]
            add(length, int({0} in first), slots)
    return found


def test_types_are_complete():
    found = types(LOGITS)
    assert sum(chance for chance, _ in found.values()) == pytest.approx(1, abs=1e-14)
    assert comb(5, 1) + 4 == len(found)  # every length wrong, lengths 2 to 5 right


def value(found):
    return sum(chance for (_, r), (chance, _) in found.items() if r)


def length_given(found, reward):
    own = [(n, chance) for (n, r), (chance, _) in found.items() if r == reward]
    return sum(n * c for n, c in own) / sum(c for _, c in own)


def field(found, power):
    v = value(found)
    return [sum((r - v) / n**power * s[a] for (n, r), (_, s) in found.items()) for a in range(4)]


def token_mean(found):
    """E[Σ (r_i − r̄)·s_i/Σ L] for G = 4 by all ordered groups."""
    mean = [0.0] * 4
    for group in product(found, repeat=4):
        total = sum(n for n, _ in group)
        for i, (_, reward) in enumerate(group):
            weight = (reward - sum(r for _, r in group) / 4) / total
            for j, other in enumerate(group):
                if j != i:
                    weight *= found[other][0]
            mean = [m + weight * s for m, s in zip(mean, found[group[i]][1], strict=True)]
    return mean


def slope(direction, reward, h=1e-5):
    size = sqrt(sum(d * d for d in direction))
    high, low = (
        types([z + sign * h * d / size for z, d in zip(LOGITS, direction, strict=True)])
        for sign in (1, -1)
    )
    return (length_given(high, reward) - length_given(low, reward)) / (2 * h)


def test_the_start():
    found, start = {n.name: n.value for n in find("D3").numbers()}, types(LOGITS)
    assert found["E[L | wrong], E[L | right] at the start"] == pytest.approx(
        [length_given(start, 0), length_given(start, 1)], abs=1e-12
    )
    directions = [field(start, 1), token_mean(start), field(start, 0)]
    for reward, name in (
        (0, "slope of E[L | wrong]: sequence mean, token mean, constant"),
        (1, "slope of E[L | right], said to be negative for the sequence mean"),
    ):
        assert found[name] == pytest.approx([slope(d, reward) for d in directions], abs=1e-8)


def test_the_flows_by_euler():
    """Richardson on 200 and 400 steps: the error of one is O(1/n), of 2·fine − coarse O(1/n²)."""
    found = {n.name: n.value for n in find("D3").numbers()}
    for target in (0.8, 0.9):
        ends = {power: [euler(power, target, n) for n in (200, 400)] for power in (1, 0)}
        for reward, name in ((0, "wrong"), (1, "right")):
            lengths = [2 * fine[reward] - coarse[reward] for coarse, fine in ends.values()]
            key = f"E[L | {name}] at V = {target}: sequence mean, constant"
            assert found[key] == pytest.approx(lengths, abs=5e-4)


def euler(power, target, steps):
    logits, h = list(LOGITS), (target - value(types(LOGITS))) / steps
    for _ in range(steps):
        now = types(logits)
        push, right = field(now, power), field(now, 0)
        rate = sum(a * b for a, b in zip(push, right, strict=True))
        logits = [z + h * d / rate for z, d in zip(logits, push, strict=True)]
    return [length_given(types(logits), reward) for reward in (0, 1)]
