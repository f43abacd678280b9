"""Log-probs that belong together: of one batch at two times, and of two engines.

Shapes: B rows, T slots.
"""

from __future__ import annotations

import numpy as np

from rlproof.watch.seen import Array, StepSeen

LEAST = 200
"""Tokens from which something is said about two engines."""


def same_batch(first: StepSeen, second: StepSeen) -> bool:
    """Whether two records are of the same completions."""
    if first.record.step != second.record.step or first.record.rank != second.record.rank:
        return False
    if first.mask is None or second.mask is None or not np.array_equal(first.mask, second.mask):
        return False
    tokens, others = first.record.arrays.get("tokens"), second.record.arrays.get("tokens")
    return tokens is None or others is None or tokens.b == others.b


def engines(step: StepSeen) -> tuple[Array, Array] | None:
    """Log-probs of the trainer and of the sampler for the policy that sampled (B, T).

    Without old log-probs, those of the first update stand for it. Only finite real slots count:
    the others are NaN in both.
    """
    sampler, mask = step.get("sampler_logps"), step.mask
    trainer = step.get("old_logps")
    if trainer is None and not step.record.update:
        trainer = step.get("new_logps")
    if trainer is None or sampler is None or mask is None:
        return None
    known = mask & np.isfinite(trainer) & np.isfinite(sampler)
    return np.where(known, trainer, np.nan), np.where(known, sampler, np.nan)


class Line:
    """Sums for a straight line y = α + s·x through pairs."""

    def __init__(self) -> None:
        self.count = 0
        self.sums = np.zeros(5)  # x, y, xx, yy, xy

    def add(self, x: Array, y: Array) -> None:
        """Pairs; those with a NaN are left out."""
        known = np.isfinite(x) & np.isfinite(y)
        x, y = x[known], y[known]
        self.count += len(x)
        self.sums += (x.sum(), y.sum(), (x * x).sum(), (y * y).sum(), (x * y).sum())

    def _moments(self) -> tuple[float, float, float]:
        x, y, xx, yy, xy = self.sums / max(self.count, 1)
        return xx - x * x, yy - y * y, xy - x * y

    @property
    def correlation(self) -> float:
        """Of x and y; 0 where one of them stands still."""
        vx, vy, cov = self._moments()
        return float(cov / np.sqrt(vx * vy)) if vx > 1e-9 and vy > 1e-9 else 0.0

    @property
    def slope(self) -> float:
        """s of the least squares line; 1 where x stands still."""
        vx, _, cov = self._moments()
        return float(cov / vx) if vx > 1e-9 else 1.0
