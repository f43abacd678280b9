"""B18 by closed forms, by sampled groups, and by a second trainer."""

from functools import cache
from math import log
from random import Random
from statistics import fmean, stdev

import numpy as np
import pytest
from tests.support.four_arms import P4, UNIFORM, kl, minus, softmax
from tests.support.numpy_trainer import final_table, log_softmax

from rlproof.lab.claims.b18_reward_prefers_the_wrong_sign import BETAS
from rlproof.lab.claims.registry import find
from rlproof.tiny import group_advantages, train


@cache
def found():
    return {n.name: n.value for n in find("B18").numbers()}


@cache
def tables():
    def slope(new, ref):
        return 1 - np.exp(np.minimum(ref - new, 700.0))

    return [final_table(slope, beta) for beta in BETAS]


def test_one_step():
    """Also a large step, from logits (.5, 0, −.5, −1)."""
    rates = found()["change of KL(ref‖π) over η·|π − ref|², P4: +k3 and −k3 in the loss"]
    assert rates == pytest.approx((-1, 1), abs=1e-5)
    for sign in (1, -1):
        pull = minus(P4, UNIFORM)
        stepped = softmax([log(p) - sign * 0.1 * g for p, g in zip(P4, pull, strict=True)])
        assert (kl(UNIFORM, stepped) < kl(UNIFORM, P4)) == (sign == 1)


def test_expected_steps_by_sampling():
    """8,000 groups at each p, by the trainer's own advantages; 4 standard errors."""
    values = found()
    steps = values["expected step towards the target with −β·k3, p = .9877, .999"]
    for p, step in zip((0.9877, 0.999), steps, strict=True):
        pushes = sampled(p)
        error = stdev(pushes) / len(pushes) ** 0.5
        assert abs(fmean(pushes) + 0.04 * (p - 0.25) - step) < 4 * error
        q = 1 - p  # the expansion of B14, √7·q, is within 20 %
        assert step - 0.04 * (p - 0.25) == pytest.approx(7**0.5 * q, rel=0.2)
    for p in (0.25, 0.6):
        assert fmean(sampled(p)) > 0
    assert values["how many are positive, of p = .25, .6, .9877, .999"] == 4


def sampled(p):
    """Pushes of 8,000 groups towards the target."""
    rng, pushes = Random(11), []
    for _ in range(8000):
        lengths = [rng.randint(1, 5) for _ in range(8)]
        hits = [sum(rng.random() < p for _ in range(n)) for n in lengths]
        advantages = group_advantages([h / n for h, n in zip(hits, lengths, strict=True)], 8)
        total = sum(a * (h - n * p) for a, h, n in zip(advantages, hits, lengths, strict=True))
        pushes.append(total / sum(lengths))
    return pushes


def test_training_by_arrays():
    values = found()
    logps = [log_softmax(t) for t in tables()]
    rewards = [np.exp(np.diag(x)).mean() for x in logps]
    assert values["expected reward at β = .4, .04, 0, −.04, −.4"] == pytest.approx(
        rewards, abs=1e-8
    )
    spread = [(np.exp(x) * (x + log(4))).sum(axis=1).mean() for x in logps]
    assert values["mean KL(π‖ref) there"] == pytest.approx(spread, abs=1e-8)
    [left] = [v for k, v in values.items() if k.startswith("log 4")]
    assert left == pytest.approx(log(4) - spread[-1], abs=1e-8)
    largest = [np.log10(abs(tables()[i]).max()) for i in (0, -1)]
    name = "log10 of the largest |logit| at β = .4 and −.4"
    assert values[name] == pytest.approx(largest, abs=1e-3)


def test_the_order_of_rewards_for_other_seeds():
    for seed in (1, 2):
        ends = []
        for beta in BETAS[1:4]:
            theta = np.array(train(seed=seed, beta=beta)[0])
            ends.append(np.exp(np.diag(log_softmax(theta))).mean())
        assert ends == sorted(ends)
