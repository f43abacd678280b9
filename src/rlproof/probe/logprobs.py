"""Probes of a token log-prob function: which formula, which temperature, which extremes.

Shapes: B rows, T slots, V words. Logits are spread widely, so that the candidate formulas
differ by more than half precision can blur.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from rlproof.bind.logprobs import LogProbsImplementation
from rlproof.faults.seen import Rows, Scoring, ScriptError
from rlproof.read.names import Slot

TEMPERATURE = 2.0
_TOKENS = [[1, 0, 1], [0, 1, 1]]
_TABLE = [[0.0, 2.6, -1.9, 1.3], [1.1, -2.3, 0.4, 3.2]]
_BUMPS = [[0.0, 1.7, -2.9], [2.2, -0.9], [-1.3, 0.6, 0.0, 3.1]]
LARGE = (120.0, 800.0)
"""Logits beyond the range of exp in float32 and in float64."""


@dataclass(frozen=True, slots=True)
class Extreme:
    """One token with a large logit among zeros: what came out."""

    size: float
    token: int
    got: float | None
    error: ScriptError | None = None


@dataclass(frozen=True, slots=True)
class LogProbsObservation:
    """All answers of one log-prob function."""

    plain: tuple[Scoring, Rows]
    tempered: tuple[Scoring, Rows] | None
    padded: tuple[Scoring, Rows] | None
    extremes: tuple[Extreme, ...]


def scoring(words: int, table: bool, temperature: float | None = None) -> Scoring:
    """Two rows of three tokens; logits that change from slot to slot unless from a table."""
    lines = [(line * words)[:words] for line in _TABLE]
    bumps = [[0.0] * words if table else (bump * words)[:words] for bump in _BUMPS]
    logits = [
        [[x + more for x, more in zip(line, bump, strict=True)] for bump in bumps] for line in lines
    ]
    return Scoring(logits, _TOKENS, temperature)


def observe(function: LogProbsImplementation) -> LogProbsObservation:
    """Ask everything.

    Raises:
        ScriptError: the function raised on ordinary logits.
    """
    target, plain = function.target, scoring(function.words, function.table)
    tempered = padded = None
    if target.has(Slot.TEMPERATURE):
        hot = scoring(function.words, function.table, TEMPERATURE)
        tempered = (hot, function.run(hot))
    if target.has(Slot.MASK):
        cut = Scoring(plain.logits, plain.tokens, None, [[1, 1, 0], [1, 0, 0]])
        padded = (cut, function.run(cut))
    extremes = tuple(_extreme(function, size, token) for size in LARGE for token in (0, 1))
    return LogProbsObservation((plain, function.run(plain)), tempered, padded, extremes)


def _extreme(function: LogProbsImplementation, size: float, token: int) -> Extreme:
    width = 2  # two tokens alike: a function may drop the first or the last
    line = [size, *[0.0] * (function.words - 1)]
    trial = Scoring([[line] * width], [[token] * width])
    run = function.in_float32 if size == LARGE[0] else function.run
    try:
        row = run(trial)[0]
    except ScriptError as error:
        return Extreme(size, token, None, error)
    return Extreme(size, token, next((x for x in row if not isfinite(x)), row[0]))
