"""The random batches reach what they are said to reach, and the points are told apart on them."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from rlproof.space.objective import Batch, Objective
from rlproof.space.surrogates import Clip
from tests.conformance.batches import SEEDS, TOLERANCE, gap, random_batch

pytestmark = pytest.mark.conformance


def test_both_signs_of_the_advantage_are_clipped_on_both_sides() -> None:
    seen = set()
    for seed in SEEDS:
        batch = random_batch(seed)
        ratio = torch.exp(batch.new - batch.old)
        real = batch.mask.bool()
        assert ratio[real].min() >= 0.3
        assert ratio[real].max() <= 3.0
        for up in (False, True):
            for good in (False, True):
                outside = ratio > 1.5 if up else ratio < 0.8
                sign = (batch.advantages > 0) == good
                if (outside & sign[:, None] & real).any():
                    seen.add((up, good))
    assert len(seen) == 4


def grpo(batch: Batch, new: torch.Tensor) -> torch.Tensor:
    """DeepSeekMath's loss as one would write it."""
    ratio, advantages = torch.exp(new - batch.old), batch.advantages[:, None]
    terms = torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
    return -((terms * batch.mask).sum(1) / batch.mask.sum(1)).mean()


@pytest.mark.parametrize(
    "changed",
    [
        Objective(ratio="sequence-mean"),
        Objective(clip=Clip(0.2, 0.28)),
        Objective(clip=Clip(0.21, 0.2)),
        Objective(surrogate="dual-clip", clip=Clip(cap=1.5)),
        Objective(surrogate="two-sided", clip=Clip(cap=1.5)),
        Objective(aggregation="token-mean"),
    ],
)
def test_a_neighbour_is_no_match(changed: Objective) -> None:
    gaps = []
    for seed in SEEDS:
        batch = random_batch(seed, empty_row=False)
        assert max(gap(Objective(), batch, partial(grpo, batch))) <= TOLERANCE
        gaps.append(max(gap(changed, batch, partial(grpo, batch))))
    assert max(gaps) > 1e-3
