"""Candidates for what a function reads off a model, computed from the known logits.

Shapes: B rows, T slots, V words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from rlproof.bind.extraction import ExtractionImplementation
from rlproof.bind.model import Ids, Texts, places
from rlproof.read.names import Slot

Array = NDArray[np.float64]
CLOSE = 2e-4  # float32 leaves about 1e-6
LOW = 0.06  # bfloat16 leaves up to 2⁻⁹ of logits of size 6, a few times
SHIFTS = {0: "next token", 1: "own logits", -1: "logits before last", 2: "later logits"}
NORMALISERS = ("vocabulary", "slots", "rows", "nothing", "probabilities", "twice")
PICKS = ("token", "mean", "largest")


@dataclass(frozen=True, slots=True)
class Reading:
    """One candidate; `first` and `last` bound the tokens that it scores."""

    shift: int
    first: int
    last: int
    normaliser: str = "vocabulary"
    pick: str = "token"
    sign: float = 1.0
    reduction: str = "token"
    temperature: str = "applied"
    labels: bool = False
    slots: tuple[int, int] = (0, 0)
    """For a softmax over slots: how many it leaves out at either end."""

    def values(self, texts: Texts, *, attended: bool = False) -> Array:
        """The log-prob of every token of the rows, nan where it has no logits: (B, T)."""
        ids = texts.ids()
        mask = [[1] * len(row) for row in ids] if attended else texts.attention()
        logits_BTV = _logits(texts, ids, mask)
        heat = texts.temperature or 1.0
        before, after = _heats(self.temperature, heat)
        scores_BTV = _normalised(logits_BTV / before, self.normaliser, self.slots) / after
        tokens = np.array(texts.labels if self.labels and texts.labels else ids)
        found = np.full(tokens.shape, np.nan)
        for t in range(tokens.shape[1]):
            at = t - 1 + self.shift
            if 0 <= at < tokens.shape[1]:
                found[:, t] = _picked(scores_BTV[:, at], tokens[:, t], self.pick)
        return self.sign * found

    def rows(self, texts: Texts) -> Array:
        """What the candidate returns: (B, last − first), or (B, 1) where it adds up."""
        part = self.values(texts)[:, self.first : self.last]
        return reduced(part, self.reduction)


def _logits(texts: Texts, ids: Ids, mask: Ids) -> Array:
    return np.array(
        [
            [texts.table.logits(token, place) for token, place in zip(*row, strict=True)]
            for row in zip(ids, places(mask), strict=True)
        ]
    )


def _heats(temperature: str, heat: float) -> tuple[float, float]:
    """What divides the logits and what the log-probs."""
    known = {
        "applied": (heat, 1.0),
        "ignored": (1.0, 1.0),
        "multiplied": (1.0 / heat, 1.0),
        "twice": (heat * heat, 1.0),
        "on log-probs": (1.0, heat),
    }
    return known[temperature]


def _normalised(logits: Array, normaliser: str, slots: tuple[int, int]) -> Array:
    if normaliser == "nothing":
        return logits
    if normaliser == "slots":
        end = logits.shape[1] - slots[1]
        return logits - _log_sum(logits[:, slots[0] : end], 1)
    logps = logits - _log_sum(logits, 0 if normaliser == "rows" else 2)
    if normaliser == "probabilities":
        return np.asarray(np.exp(logps))
    if normaliser == "twice":
        chances = np.exp(logps)
        return np.asarray(chances - _log_sum(chances, 2))
    return np.asarray(logps)


def _log_sum(x: Array, axis: int) -> Array:
    total: Array = np.log(np.exp(x).sum(axis=axis, keepdims=True))
    return total


def _picked(scores: Array, tokens: NDArray[np.int64], pick: str) -> Array:
    if pick == "mean":
        return np.asarray(scores.mean(-1))
    if pick == "largest":
        return np.asarray(scores.max(-1))
    return np.take_along_axis(scores, tokens[:, None], 1)[:, 0]


def reduced(part: Array, reduction: str) -> Array:
    """The log-probs of each row as they are, added up, or averaged."""
    if reduction == "sum":
        return np.asarray(part.sum(1, keepdims=True))
    return np.asarray(part.mean(1, keepdims=True)) if reduction == "mean" else part


def is_usual(reading: Reading) -> bool:
    """Whether it is right: one number a row is too little to accept a wrong one by and by."""
    return (reading.shift, reading.normaliser, reading.pick) == (0, "vocabulary", "token")


def core(rows: Array) -> tuple[Array, bool]:
    """The rows without columns of zeros at their ends, and whether there were any."""
    filled = np.flatnonzero(np.abs(rows).max(0) > 0)
    if rows.shape[1] == 1 or not len(filled):
        return rows, False
    core = rows[:, filled[0] : filled[-1] + 1]
    return core, core.shape != rows.shape


def candidates(function: ExtractionImplementation, texts: Texts) -> Iterator[Reading]:
    """The usual ones first."""
    sources = (True, False) if Slot.LABELS in function.slots else (False,)
    for labels, shift, pick, normaliser, sign in product(
        sources, SHIFTS, PICKS, NORMALISERS, (1.0, -1.0)
    ):
        base = Reading(shift, 0, 0, normaliser, pick, sign, labels=labels)
        if normaliser == "slots":
            ends = ((0, 0), (0, 1), (texts.before, 0), (texts.before - 1, 1), (1, 0))
            yield from (replace(base, slots=slots) for slots in ends)
        elif not (normaliser == "rows" and function.manner.one_row):
            yield base


def windows(width: int, total: int) -> Iterator[tuple[int, int, str]]:
    """Which stretch of `total` tokens an answer of this width may be about, and its reduction."""
    if width > 1:
        yield from ((first, first + width, "token") for first in range(total - width + 1))
        return
    for reduction in ("sum", "mean"):
        for first in range(total - 1):
            yield from ((first, last, reduction) for last in range(first + 2, total + 1))
