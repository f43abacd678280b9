"""Recorded steps of any objective on random batches. Shapes: B rows, T slots."""

from __future__ import annotations

import numpy as np

from rlproof.space.aggregation import Scope
from rlproof.space.batch import Batch
from rlproof.watch.record import Recorder

ROWS, WIDTH, GROUP = 16, 6, 4


def arrays(rng, spread=0.4, width=WIDTH):
    """Off-policy log-probs with clipped tokens, group-normalised advantages, unequal lengths."""
    old, ref = -rng.uniform(0.5, 2.5, (2, ROWS, width))
    new = np.minimum(old + rng.normal(0, spread, old.shape), -0.01)
    rewards = rng.integers(0, 3, (ROWS // GROUP, GROUP)) / 2
    std = rewards.std(1, keepdims=True)
    return {
        "new_logps": new,
        "old_logps": old,
        "ref_logps": ref,
        "sampler_logps": np.minimum(old + rng.normal(0, 0.1, old.shape), -0.01),
        "mask": (np.arange(width) < rng.integers(2, width + 1, (ROWS, 1))).astype(float),
        "rewards": rewards.ravel(),
        "advantages": ((rewards - rewards.mean(1, keepdims=True)) / (std + 1e-6)).ravel(),
        "entropy": rng.uniform(0, 2, old.shape),
    }


def batch(given, length=7.0):
    return Batch(
        new=given["new_logps"], advantages=given["advantages"], mask=given["mask"],
        old=given["old_logps"], ref=given["ref_logps"], sampler=given["sampler_logps"],
        entropy=given["entropy"], scope=Scope(length=length), groups=GROUP,
        kept=np.ones(ROWS),
    )  # fmt: skip


def record(
    path, losses, steps=6, seed=0, gradients=None, dtype=float, widths=(WIDTH,), entropy=False,
    **more,
):  # fmt: skip
    """`steps` records of `losses(arrays)`, and of `gradients(arrays)` where given.

    The entropy is recorded where `entropy` is true.
    """
    rng, recorder = np.random.default_rng(seed), Recorder(path, every=1)
    for step in range(steps):
        given = arrays(rng, width=widths[step % len(widths)])
        given = {k: v.astype(dtype).astype(float) for k, v in given.items()}
        written = {k: v.astype(dtype) for k, v in given.items() if entropy or k != "entropy"}
        grad = None if gradients is None else gradients(given).astype(dtype)
        recorder.record(
            step=step, loss=dtype(losses(given)), grad=grad, groups=GROUP, **written, **more
        )
    recorder.close()
    return str(path)
