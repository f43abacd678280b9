"""The optimizer and its learning rate, which is a function of the step alone."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from rlproof.train.config import Optimizer


def made(parameters: dict[str, nn.Parameter], how: Optimizer) -> torch.optim.Optimizer:
    """An optimizer over named parameters; vectors (norms, biases) are not decayed."""
    matrices = [p for p in parameters.values() if p.ndim >= 2]
    vectors = [p for p in parameters.values() if p.ndim < 2]
    groups: list[dict[str, Any]] = [
        {"params": some, "weight_decay": decay}
        for some, decay in ((matrices, how.weight_decay), (vectors, 0.0))
        if some
    ]
    if how.name == "sgd":
        return torch.optim.SGD(groups, lr=how.lr, momentum=how.betas[0])
    plain = all(type(p) is nn.Parameter and p.device.type == "cpu" for p in parameters.values())
    fused = True if plain else None  # on a CPU a quarter of the time; elsewhere torch chooses
    return torch.optim.AdamW(groups, lr=how.lr, betas=how.betas, eps=how.eps, fused=fused)


def rate(step: int, steps: int, how: Optimizer) -> float:
    """The learning rate of a step, counted from 0.

    It rises linearly over the warm-up, lr·(step + 1)/warmup, and falls to `final` · lr, which
    the step after the last one would have.
    """
    if step < how.warmup:
        return how.lr * (step + 1) / how.warmup
    done = (step - how.warmup) / max(steps - how.warmup, 1)
    left = {
        "constant": 1.0,
        "linear": 1 - done,
        "cosine": (1 + math.cos(math.pi * min(done, 1.0))) / 2,
    }[how.schedule]
    if how.schedule == "constant":
        return how.lr
    return how.lr * (how.final + (1 - how.final) * left)
