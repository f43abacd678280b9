"""The four small worlds that the claims are computed on.

P4    one token of four: everything fits in the head.
SEED  the task of the tiny trainer: i.i.d. tokens, a length the environment draws.
EOS   the policy ends the sequence itself, so the length is its choice.
TREE  a softmax row for every prefix: tokens that depend on each other.
"""

from __future__ import annotations

from functools import cache
from random import Random
from statistics import NormalDist

import numpy as np

from rlproof.lab.policies import Floats, bandit, stateless, tree, with_eos
from rlproof.lab.tasks import Task

P4_LOGITS = (0.5, 0.0, -0.5, -1.0)
P4_REWARDS = (1.0, 0.6, 0.3, 0.0)
REF2_LOGITS = (0.0, 0.8, -0.3, 0.2)
SEED_LOGITS = EOS_LOGITS = (0.2, 0.0, -0.1, -0.3)


@cache
def p4() -> Task:
    """A bandit: logits (.5, 0, −.5, −1), rewards (1, .6, .3, 0); the reference is uniform.

    π = (.45505, .27600, .16741, .10154), V = .670878.
    """
    arms = bandit(4)
    return Task(arms.at(P4_LOGITS), np.array(P4_REWARDS), reference=arms.at(np.zeros(4)))


@cache
def p4_binary() -> Task:
    """P4 with rewards (1, 0, 0, 0): success has probability .45505."""
    return p4().but(rewards=np.array([1.0, 0.0, 0.0, 0.0]))


@cache
def p4_ref2() -> Task:
    """P4 with the reference softmax(0, .8, −.3, .2)."""
    return p4().but(reference=bandit(4).at(REF2_LOGITS))


def bernoulli(success: float) -> Task:
    """Two actions, the first rewarded with 1 and of probability `success`; ∇p = p(1−p)(1, −1)."""
    return Task(bandit(2).at_probs((success, 1 - success)), np.array([1.0, 0.0]))


@cache
def seed() -> Task:
    """Logits (.2, 0, −.1, −.3), i.i.d. tokens, length uniform on 1..5, reward the share of token 0.

    1364 sequences with 11 different rewards; V = π₀ = .315848. The reference is uniform.
    """
    family = stateless(4, (0.2,) * 5)
    hits_N = ((family.tokens == 0) * family.mask).sum(axis=1)
    return Task(family.at(SEED_LOGITS), hits_N / family.lengths, reference=family.at(np.zeros(4)))


@cache
def eos() -> Task:
    """Logits (.2, 0, −.1, −.3), token 3 ends, at most 5 tokens: 364 sequences.

    The reward is 1 if token 0 is among the first two. V = .4714, E[L] = 3.4175. The reference
    is uniform.
    """
    family = with_eos(4, 5, 3)
    hit_N = ((family.tokens == 0) * family.mask)[:, :2].any(axis=1)
    return Task(family.at(EOS_LOGITS), hit_N.astype(float), reference=family.at(np.zeros(4)))


@cache
def tree_of(draw: int, depth: int = 3, spread: float = 1.0) -> Task:
    """Three tokens, a softmax row for every prefix; logits, rewards and reference are drawn.

    Logits and rewards are `spread`·N(0, 1) and N(0, 1); the reference is drawn like the logits.
    Depth 3 has 27 sequences and 13 rows. `draw` names the draw.
    """
    family = tree(3, depth)
    size, count = family.shape[0] * family.shape[1], family.chance.size
    drawn = normal(2 * size + count, draw)
    policy, reference = spread * drawn[:size], spread * drawn[size : 2 * size]
    return Task(family.at(policy), drawn[2 * size :], reference=family.at(reference))


def normal(count: int, draw: int) -> Floats:
    """Standard normal numbers (count,), the same in every version of Python and NumPy."""
    rng, inverse = Random(draw), NormalDist().inv_cdf
    return np.array([inverse(rng.random()) for _ in range(count)])
