"""What several claims about divergences share: policies, one-term objectives, a trainer.

Shapes: P prompts, V vocabulary, D parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import numpy as np

from rlproof import tiny
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import p4
from rlproof.lab.policies import Floats, Policy, bandit
from rlproof.lab.tasks import Task
from rlproof.space.advantages import Advantage
from rlproof.space.objective import Divergence, Objective

Slope = Callable[[float, float], float]
"""∂d/∂log π of a penalty d, from log π and log π_ref."""


def uniform() -> Policy:
    """Four arms of equal probability."""
    return bandit(4).at(np.zeros(4))


def peaked(rest: float) -> Policy:
    """Four arms of probabilities (1 − 3d, d, d, d)."""
    return bandit(4).at_probs((1 - 3 * rest, rest, rest, rest))


def moved() -> Policy:
    """P4 after an update: logits (.9, −.2, −.4, −1.3)."""
    return bandit(4).at(p4().policy.theta + np.array([0.4, -0.2, 0.1, -0.3]))


def penalty(
    estimator: str, place: str = "loss", gradient: str = "naive", beta: float = 1.0
) -> Objective:
    """An objective with a penalty; its advantages are unbiased (leave-one-out, no scale)."""
    return Objective(
        f"{estimator} in the {place}",
        advantage=Advantage(baseline="leave-one-out", scale="none"),
        divergence=Divergence(place, estimator=estimator, gradient=gradient, coefficient=beta),
        aggregation="sequence-sum",
    )


def descends(objective: Objective, task: Task, group_size: int = 2) -> Floats:
    """The expected direction that the penalty alone is descended along: −E[ĝ] at rewards 0."""
    return -moments(objective, task.but(rewards=np.zeros_like(task.rewards)), group_size).mean


def trained(
    slope: Slope, beta: float, steps: int = 60, epochs: int = 2, lr: float = 2.0, seed: int = 0
) -> tiny.Table:
    """`rlproof.tiny.train` with another penalty in the loss, given by its slope.

    Returns:
        The table of logits. With the slope of k3 it is that of `tiny.train`.
    """
    rng, prompts = Random(seed), range(tiny.VOCAB)
    theta = [[0.0] * tiny.VOCAB for _ in prompts]
    for _ in range(steps):
        rows, tokens, mask, rewards = tiny.rollout(theta, prompts, 8, 5, rng)
        old = tiny.token_logps(theta, rows, tokens)
        advantages = tiny.group_advantages(rewards, 8)
        for _ in range(epochs):
            policy = tiny.grpo_grad(theta, rows, tokens, old, old, advantages, mask, beta=0.0)
            pull = _pull(theta, rows, tokens, mask, slope)
            for row, own, other in zip(theta, policy, pull, strict=True):
                row[:] = [x - lr * (g + beta * h) for x, g, h in zip(row, own, other, strict=True)]
    return theta


def _pull(
    theta: tiny.Table,
    rows: Sequence[int],
    tokens: Sequence[Sequence[int]],
    mask: Sequence[Sequence[float]],
    slope: Slope,
) -> tiny.Table:
    """Gradient of the token mean of the penalty; the reference is uniform."""
    real, ref = sum(map(sum, mask)), -np.log(tiny.VOCAB)
    pull = [[0.0] * tiny.VOCAB for _ in theta]
    logps = [tiny.log_softmax(row) for row in theta]
    probs = [[float(np.exp(x)) for x in row] for row in logps]
    for prompt, sequence, kept in zip(rows, tokens, mask, strict=True):
        for token, counts in zip(sequence, kept, strict=True):
            if counts:
                weight = slope(logps[prompt][token], ref) / real
                for v in range(tiny.VOCAB):
                    pull[prompt][v] += weight * ((token == v) - probs[prompt][v])
    return pull


def success(theta: tiny.Table) -> float:
    """Exact expected reward of a table of the tiny trainer: the mean of π_p(target(p))."""
    chances = [np.exp(tiny.log_softmax(row)[tiny.target(p)]) for p, row in enumerate(theta)]
    return float(np.mean(chances))
