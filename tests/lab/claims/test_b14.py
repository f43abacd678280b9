"""B14 by counting imperfect completions, by a Monte Carlo step, and by a long run."""

from functools import cache
from itertools import combinations_with_replacement
from math import comb, exp, factorial, log, sqrt
from random import Random
from statistics import fmean, stdev

import pytest

from rlproof.lab.claims.b14_the_tiny_trainer_stops_below_one import push
from rlproof.lab.claims.registry import find
from rlproof.tiny import group_advantages, train


@cache
def found():
    return {n.name: n.value for n in find("B14").numbers()}


def counted(p, most):
    """E[(1/N)·Σ A_i·s_i], over kinds (length, wrong tokens) of at most `most` imperfect rows."""
    kinds = [(n, w) for n in range(1, 6) for w in range(1, n + 1)]
    chance = {(n, w): comb(n, w) * p ** (n - w) * (1 - p) ** w / 5 for n, w in kinds}
    perfect = [{0: 1.0}]  # chances of the summed length of m perfect rows
    for _ in range(8):
        longer = {}
        for total, c in perfect[-1].items():
            for n in range(1, 6):
                longer[total + n] = longer.get(total + n, 0.0) + c * p**n / 5
        perfect.append(longer)
    result = 0.0
    for size in range(1, most + 1):
        for rows in combinations_with_replacement(kinds, size):
            orders = factorial(8) / factorial(8 - size)
            weight = 1.0
            for kind in set(rows):
                orders /= factorial(rows.count(kind))
            for kind in rows:
                weight *= chance[kind]
            rewards = [1 - w / n for n, w in rows] + [1.0] * (8 - size)
            centre = sum(rewards) / 8
            sd = sqrt(sum((r - centre) ** 2 for r in rewards) / 8)
            if sd < 1e-12:
                continue
            own = sum(
                (r - centre) / (sd + 1e-6) * (n * (1 - p) - w)
                for r, (n, w) in zip(rewards, rows, strict=False)
            )
            each = (1 - centre) / (sd + 1e-6) * (1 - p)
            short = sum(n for n, _ in rows)
            result += orders * weight * sum(
                c * (own + each * total) / (short + total)
                for total, c in perfect[8 - size].items()
            )  # fmt: skip
    return result


def test_the_push_by_counting():
    """With up to 4 imperfect rows at p = .99; five are left out, with chance 2e-6."""
    assert push(0.01) == pytest.approx(counted(0.99, 4), rel=1e-4)
    assert push(0.0123) == pytest.approx(0.058975 - 0.04 * 0.7377, abs=2e-6)  # of B18
    assert counted(0.9877, 4) == pytest.approx(push(0.0123), abs=5e-6)
    assert counted(0.999, 3) == pytest.approx(0.032584 - 0.04 * 0.749, abs=2e-6)


def test_the_resting_point_by_counting():
    p = found()["p at rest, β = .04 and .1"][0]
    assert counted(p, 4) == pytest.approx(0.04 * (p - 0.25), rel=2e-4)
    assert counted(p - 0.001, 4) > 0.04 * (p - 0.251)
    assert counted(p + 0.001, 4) < 0.04 * (p - 0.249)


def test_the_push_by_sampling():
    """20,000 groups at p = .9, each by the tiny trainer's own advantages; 4 standard errors."""
    rng, p, pushes = Random(0), 0.9, []
    for _ in range(20_000):
        lengths = [rng.randint(1, 5) for _ in range(8)]
        hits = [sum(rng.random() < p for _ in range(n)) for n in lengths]
        advantages = group_advantages([h / n for h, n in zip(hits, lengths, strict=True)], 8)
        total = sum(a * (h - n * p) for a, h, n in zip(advantages, hits, lengths, strict=True))
        pushes.append(total / sum(lengths))
    assert abs(fmean(pushes) - push(1 - p)) < 4 * stdev(pushes) / sqrt(len(pushes))


def test_a_run_stays_there():
    """β = .1: eight runs; 4 standard errors, the error from the runs themselves."""
    ends = []
    for seed in range(8):
        [row] = train(300, prompts=(0,), epochs=1, lr=1.0, seed=seed, beta=0.1)[0]
        ends.append(exp(row[0]) / sum(map(exp, row)))
    at_rest = found()["p at rest, β = .04 and .1"][1]
    assert abs(fmean(ends) - at_rest) < 4 * stdev(ends) / sqrt(len(ends))


def test_the_remaining_numbers():
    values = found()
    weak, strong = values["p at rest, β = .04 and .1"]
    ratios = ((1 - weak) / (0.03 / sqrt(7)), (1 - strong) / (0.075 / sqrt(7)))
    assert values["(1 − p)/(3β/4√7) there, near 1 for small β"] == pytest.approx(ratios)
    assert values["the expected step over q at q = 10⁻⁶"] == pytest.approx(sqrt(7), abs=1e-4)
    [other] = [v for k, v in values.items() if "instead" in k]
    q = 3 * exp(-sqrt(7) / 0.1)
    assert other == pytest.approx(q * 1e11, rel=5e-4)  # eps = 1e-6 in the divisor
    assert sqrt(7) * q == pytest.approx(0.1 * q * (-log(q / 3)))
    [run] = [v for k, v in values.items() if k.startswith("mean p of four runs")]
    assert abs(run - weak) < 4 * 0.00079 / 2
