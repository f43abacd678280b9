"""How the rewards of a group of completions become advantages.

Shapes: P prompts (groups), G completions each. A baseline is subtracted, then a scale divides.
Both take rewards (P, G) and return something that broadcasts against them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Statistic = Callable[[Array], Array]


def group_mean(rewards_PG: Array) -> Array:
    """The mean of the group, the member itself included (GRPO, arXiv:2402.03300)."""
    return np.asarray(rewards_PG.mean(1, keepdims=True))


def leave_one_out(rewards_PG: Array) -> Array:
    """The mean of the *other* members (RLOO, arXiv:2402.14740)."""
    others = rewards_PG.shape[1] - 1
    return np.asarray((rewards_PG.sum(1, keepdims=True) - rewards_PG) / others)


def batch_mean(rewards_PG: Array) -> Array:
    """The mean of all rewards (REINFORCE++, arXiv:2501.03262)."""
    return np.asarray(rewards_PG.mean(keepdims=True))


def nothing(rewards_PG: Array) -> Array:
    """No baseline."""
    return np.zeros((1, 1))


def one(rewards_PG: Array) -> Array:
    """No scale (Dr. GRPO, arXiv:2503.20783)."""
    return np.ones((1, 1))


def population_std(rewards_PG: Array) -> Array:
    """√(Σ(r − r̄)²/G) of the group."""
    return np.asarray(rewards_PG.std(1, keepdims=True))


def sample_std(rewards_PG: Array) -> Array:
    """√(Σ(r − r̄)²/(G − 1)) of the group, what `torch.std` gives."""
    return np.asarray(rewards_PG.std(1, ddof=1, keepdims=True))


def batch_population_std(rewards_PG: Array) -> Array:
    """The population standard deviation of all rewards."""
    return np.asarray(rewards_PG.std(keepdims=True))


def batch_sample_std(rewards_PG: Array) -> Array:
    """The sample standard deviation of all rewards."""
    return np.asarray(rewards_PG.std(ddof=1, keepdims=True))


BASELINES: dict[str, Statistic] = {
    "group-mean": group_mean,
    "leave-one-out": leave_one_out,
    "batch-mean": batch_mean,
    "none": nothing,
}
SCALES: dict[str, Statistic] = {
    "population-std": population_std,
    "sample-std": sample_std,
    "none": one,
    "batch-population-std": batch_population_std,
    "batch-sample-std": batch_sample_std,
}
