"""Advantage estimators of frameworks that take groups by name: their rows, and what they get."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from rlproof.space.advantages import Advantage
from rlproof.space.objective import Objective
from tests.conformance.batches import SLOTS

Draw = Callable[[int, torch.Generator], torch.Tensor]


@dataclass(frozen=True)
class Estimator:
    """An estimator of a framework, and the advantage coordinates that it is said to be."""

    option: str
    function: str
    advantage: Advantage
    keywords: dict[str, Any] = field(default_factory=dict)
    lone: bool = True
    """Whether the equality holds with a group of one."""
    note: str = ""


def grouped_rewards(
    seed: int, lone: bool, draw: Draw
) -> tuple[torch.Tensor, np.ndarray, torch.Tensor]:
    """Rewards (N,), group names and a ragged mask (N, T); two groups are binary.

    Args:
        seed: of the generator.
        lone: whether there is a group of one as well.
        draw: so many rewards from a generator, for the groups that are not binary.
    """
    source = torch.Generator().manual_seed(seed)
    sizes = [4, 3, 4, 2] + [1] * lone
    names = np.repeat([f"prompt-{i}" for i in range(len(sizes))], sizes)
    order = torch.randperm(len(names), generator=source).numpy()
    rewards = draw(len(names), source)
    binary = torch.randint(0, 2, (len(names),), generator=source).double()
    is_binary = torch.from_numpy(np.isin(names, ["prompt-0", "prompt-1"]))
    rewards = torch.where(is_binary, binary, rewards)
    lengths = torch.randint(1, SLOTS + 1, (len(names),), generator=source)
    mask = (torch.arange(SLOTS)[None, :] < lengths[:, None]).double()
    return rewards[torch.from_numpy(order.copy())], names[order], mask


def at_the_end(rewards: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Token-level rewards with all of it on the last real token."""
    last = mask.cumsum(1).argmax(1, keepdim=True)
    return torch.zeros_like(mask).scatter(1, last, rewards[:, None])


def apart(
    how: Estimator,
    theirs: torch.Tensor,
    rewards: torch.Tensor,
    names: np.ndarray,
    mask: torch.Tensor,
) -> float:
    """The largest difference of a framework's advantages (N, T) from those of the space."""
    ours = Objective(advantage=how.advantage).advantages(rewards, names, mask.sum(1))
    return float((ours[:, None] * mask - theirs).abs().max())
