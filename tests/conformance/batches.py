"""Random batches that reach every branch of a loss, and how far two losses are apart on one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch.overrides import TorchFunctionMode

from rlproof.space.aggregation import Scope
from rlproof.space.objective import Batch, Objective

ROWS, SLOTS = 5, 7
SEEDS = range(6)
TOLERANCE = 1e-8
Loss = Callable[[torch.Tensor], torch.Tensor]
"""A loss as a function of log π_new (B, T)."""


class Row(NamedTuple):
    """One line of the documentation: what a framework's option is as a point of the space."""

    framework: str
    version: str
    option: str
    objective: Objective
    note: str = ""


class Gap(NamedTuple):
    """Largest differences, absolute up to 1 and relative beyond."""

    value: float
    gradient: float


def random_batch(
    seed: int,
    *,
    on_policy: bool = False,
    far_reference: bool = True,
    token_advantages: bool = False,
    empty_row: bool | None = None,
    scope: Scope | None = None,
) -> Batch:
    """Five rows of seven slots, float64, with finite nonsense on the padding.

    Ratios to the old policy lie within 0.3 and 3, on both sides of every usual clip and for
    both signs of the advantage. Odd seeds have holes in the mask (tool calls); every third has
    an empty row and one an advantage of 0.

    Args:
        seed: of the generator.
        on_policy: whether there are no old log-probs.
        far_reference: whether some log-ratios to the reference are ±4, so that k3 exceeds 10.
        token_advantages: advantages (B, T) instead of (B,).
        empty_row: overrides whether the last row has no token at all.
        scope: explicit denominators.
    """
    source = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=source, dtype=torch.float64)

    lengths = torch.randint(1, SLOTS + 1, (ROWS,), generator=source)
    lengths[0] = SLOTS
    if seed % 3 == 2 if empty_row is None else empty_row:
        lengths[-1] = 0
    mask = (torch.arange(SLOTS)[None, :] < lengths[:, None]).long()
    if seed % 2:
        mask[0, 2] = mask[0, 3] = 0
    new = -1.5 - normal(ROWS, SLOTS).abs()
    drift = 0.35 * normal(ROWS, 1) + 0.6 * normal(ROWS, SLOTS)
    old = new - drift.clamp(-1.2, 1.09)
    sampler = old - 0.15 * normal(ROWS, 1) - 0.5 * normal(ROWS, SLOTS)
    reference = new + 0.4 * normal(ROWS, SLOTS)
    if far_reference:
        reference[0, 0], reference[1, 0] = new[0, 0] + 4, new[1, 0] - 4
    advantages = normal(ROWS, SLOTS) if token_advantages else normal(ROWS)
    if seed == 3:
        advantages[1] = 0.0
    entropy = normal(ROWS, SLOTS).abs()
    return Batch(
        new=new,
        advantages=advantages,
        mask=mask,
        old=None if on_policy else old,
        ref=reference,
        sampler=sampler,
        entropy=entropy,
        scope=scope or Scope(),
    )


@contextmanager
def double() -> Iterator[None]:
    """Float64 as PyTorch's default.

    Frameworks mix Python numbers and integer counts into their losses (`torch.where(a > 0, 1.0,
    1.05)`, `count / (count - 1)`), which are float32 otherwise and would hide behind 5e-8.
    """
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


class Wide(TorchFunctionMode):
    """`tensor.float()` gives float64: the casts of the framework would hide behind 1e-7."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.float:
            return args[0].double()
        return func(*args, **(kwargs or {}))


@contextmanager
def wide() -> Iterator[None]:
    """Float64 as the default, and in the place of explicit float32."""
    with double(), Wide():
        yield


def derivative(loss: Loss, new: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The value of a loss at log-probs, and its gradient there."""
    leaf = new.clone().requires_grad_(True)
    with double():
        value = loss(leaf)
        (gradient,) = torch.autograd.grad(value, leaf)
    return value.detach(), gradient


def gap(objective: Objective, batch: Batch, theirs: Loss) -> Gap:
    """How far an objective and a framework's loss are apart, in value and in gradient.

    The gradient is compared with the closed form and with autograd through `Objective.loss`.
    """
    loss, expected = derivative(theirs, batch.new)
    value, autograd = derivative(lambda new: objective.loss(replace(batch, new=new))[0], batch.new)
    closed = objective.gradient(batch)
    return Gap(
        _apart(value, loss),
        max(_apart(closed, expected), _apart(autograd, expected)),
    )


def assert_equal(objective: Objective, batch: Batch, theirs: Loss) -> None:
    """Value and gradient agree within `TOLERANCE`."""
    found = gap(objective, batch, theirs)
    assert max(found) <= TOLERANCE, found


def _apart(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    assert torch.isfinite(theirs).all()
    return float(((ours - theirs).abs() / theirs.abs().clamp(min=1.0)).max())
