"""Seconds to hold one loss against GRPO on 64 random off-policy batches, in value and gradient.

    python benchmarks/probe_time.py [ROUNDS]

The same PyTorch function, the same shapes, ratios within e^±2 and a tolerance of 1e-9: once
against `Objective.loss` and `Objective.gradient`, and, where polgrad can be imported, once by
`polgrad.testing.assert_conforms`. Prints the first and the best of several rounds in this
process, and the ratios. The first round of rlproof has the lazy import of array-api-compat in it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import torch

from rlproof.space.objective import Batch, Objective

CASES, SHAPES, TOLERANCE = 64, ((4, 8), (2, 12)), 1e-9
OBJECTIVE = Objective(aggregation="sequence-mean")


def loss(
    *,
    logprobs: torch.Tensor,
    old_logprobs: torch.Tensor,
    advantages: torch.Tensor,
    response_mask: torch.Tensor,
) -> torch.Tensor:
    """GRPO without its divergence, as people write it."""
    mask = response_mask.to(logprobs.dtype)
    ratio = torch.exp(logprobs - old_logprobs)
    adv = advantages[:, None]
    gain = torch.minimum(ratio * adv, ratio.clamp(0.8, 1.2) * adv)
    return -((gain * mask).sum(1) / mask.sum(1)).mean()


def draw(source: np.random.Generator, rows: int, slots: int) -> Batch:
    """A batch with the ranges of polgrad's: finite nonsense on the padding."""
    lengths = source.integers(1, slots + 1, rows)
    new = source.uniform(-8, -0.0625, (rows, slots))
    return Batch(
        new=new,
        old=new + source.uniform(-2, 2, (rows, slots)),
        advantages=source.uniform(-3, 3, rows),
        mask=np.arange(slots)[None, :] < lengths[:, None],
    )


def apart(ours: np.ndarray, theirs: np.ndarray) -> float:
    return float(np.linalg.norm(ours - theirs) / max(float(np.linalg.norm(theirs)), 1e-12))


def by_rlproof() -> None:
    source = np.random.default_rng(0)
    for case in range(CASES):
        batch = draw(source, *SHAPES[case % len(SHAPES)])
        leaf = torch.tensor(batch.new, requires_grad=True)
        value = loss(
            logprobs=leaf,
            old_logprobs=torch.from_numpy(batch.old),
            advantages=torch.from_numpy(batch.advantages),
            response_mask=torch.from_numpy(batch.mask),
        )
        value.backward()
        assert leaf.grad is not None
        ours, gradient = OBJECTIVE.value_and_gradient(batch)
        assert apart(ours, value.detach().numpy()) <= TOLERANCE
        assert apart(gradient, leaf.grad.numpy()) <= TOLERANCE


def by_polgrad() -> Callable[[], object] | None:
    try:
        from polgrad.testing import assert_conforms
    except ImportError:
        return None
    return lambda: assert_conforms(loss, "grpo", n_cases=CASES, shapes=SHAPES)


def seconds(action: Callable[[], object], rounds: int) -> list[float]:
    spent = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        spent.append(time.perf_counter() - start)
    return spent


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    torch.set_num_threads(1)
    loss(
        logprobs=torch.zeros(1, 1, requires_grad=True),
        old_logprobs=torch.zeros(1, 1),
        advantages=torch.ones(1),
        response_mask=torch.ones(1, 1),
    ).backward()  # PyTorch's own start, which belongs to neither
    theirs = by_polgrad()
    ours = seconds(by_rlproof, rounds)
    print(f"rlproof  first {ours[0]:.4f} s, best of {rounds} {min(ours):.4f} s")
    if theirs is None:
        print("polgrad  not installed")
        return
    other = seconds(theirs, rounds)
    print(f"polgrad  first {other[0]:.4f} s, best of {rounds} {min(other):.4f} s")
    print(f"ratio    first {other[0] / ours[0]:.2f}, best {min(other) / min(ours):.2f}")


if __name__ == "__main__":
    main()
