"""What rules about curves keep of them: the first values, the last ones, their spread."""

from __future__ import annotations

from collections import deque
from math import sqrt
from statistics import fmean, median, pstdev
from typing import TypeGuard


def usable(value: float | None) -> TypeGuard[float]:
    """Whether a number can be averaged: there, finite, and not beyond all bounds."""
    return value is not None and abs(value) < 1e100


class Ends:
    """The first and the last `size` values of a curve, never the same one in both."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.first: list[float] = []
        self.last: deque[float] = deque(maxlen=size)
        self.steps: deque[float] = deque(maxlen=size)
        self.start: float | None = None

    def add(self, step: float, value: float) -> None:
        """The next value."""
        if self.start is None:
            self.start = step
        if len(self.first) < self.size:
            self.first.append(value)
        else:
            self.last.append(value)
            self.steps.append(step)

    @property
    def full(self) -> bool:
        """Whether both ends are there."""
        return len(self.last) == self.size

    def medians(self) -> tuple[float, float]:
        """Of the first and of the last values."""
        return median(self.first), median(self.last)

    def means(self) -> tuple[float, float]:
        """Of the first and of the last values."""
        return fmean(self.first), fmean(self.last)


def error_of_mean(values: list[float]) -> float:
    """The standard error of the mean of values that come one after another."""
    return pstdev(values) / sqrt(max(len(values) - 1, 1))
