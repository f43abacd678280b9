"""What a token log-prob function computes: normaliser, alignment, temperature, precision.

Shapes: B rows, T slots, V words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from rlproof.bind.logprobs import LogProbsImplementation
from rlproof.faults.seen import LogProbsSeen, Rows, Scoring, ScriptError
from rlproof.probe.logprobs import LogProbsObservation, observe
from rlproof.read.anatomy import declares_unused
from rlproof.read.targets import Target
from rlproof.read.tokens import log_probs_landmarks

Array = NDArray[np.float64]
_CLOSE = 2e-4  # float32 leaves about 1e-6
_LOW = 0.08  # bfloat16 leaves up to 2⁻⁹ of logits of size 5, twice
NORMALISERS: dict[str, tuple[int, ...]] = {
    "vocabulary": (2,),
    "slots": (1,),
    "rows": (0,),
    "everything": (0, 1, 2),
    "nothing": (),
}
_PAIRS: dict[str, tuple[slice, slice, int]] = {
    "same slot": (slice(None), slice(None), 0),
    "next token": (slice(None, -1), slice(1, None), 0),
    "next token, wrapped": (slice(None), slice(None), 1),
    "same slot, first left out": (slice(1, None), slice(1, None), 0),
    "same slot, last left out": (slice(None, -1), slice(None, -1), 0),
    "later logits": (slice(1, None), slice(None, -1), 0),
    "later logits, wrapped": (slice(None), slice(None), -1),
}
"""Which logits score which tokens: slots of either, and how far tokens or logits are rolled."""


@dataclass(frozen=True, slots=True)
class Formula:
    """One candidate: what is normalised over, which slots, sign, sum, temperature."""

    normaliser: str
    pairing: str
    reduction: str
    sign: float
    temperature: str = "applied"

    def rows(self, scoring: Scoring, table: bool) -> Array:
        """The log-probs that this formula gives: (B, T) or (B, 1)."""
        of_logits, of_tokens, roll = _PAIRS[self.pairing]
        heat = scoring.temperature or 1.0
        before = heat if self.temperature == "applied" else 1.0
        after = heat if self.temperature == "on log-probs" else 1.0
        logits = np.roll(np.array(scoring.logits), min(roll, 0), axis=1)[:, of_logits] / before
        logps_BTV = (logits - _log_sum(logits, NORMALISERS[self.normaliser], table)) / after
        tokens_BT = np.roll(np.array(scoring.tokens), -max(roll, 0), axis=1)[:, of_tokens]
        picked = np.take_along_axis(logps_BTV, tokens_BT[..., None], 2)[..., 0]
        return _REDUCTIONS[self.reduction](self.sign * picked)


_REDUCTIONS: dict[str, Callable[[Array], Array]] = {
    "token": lambda x: x,
    "sum": lambda x: x.sum(1, keepdims=True),
    "mean": lambda x: x.mean(1, keepdims=True),
    "zero first": lambda x: np.pad(x, ((0, 0), (1, 0))),
    "zero last": lambda x: np.pad(x, ((0, 0), (0, 1))),
}


def _log_sum(logits: Array, axes: tuple[int, ...], table: bool) -> Array | float:
    """Log of the sum of exponentials; a table has no axis of slots."""
    if not axes:
        return 0.0
    counted = logits[:, :1] if table and 1 in axes and len(axes) > 1 else logits
    total: Array = np.log(np.exp(counted).sum(axis=axes, keepdims=True))
    return total


def judge(function: LogProbsImplementation) -> LogProbsSeen:
    """Probe one function and name what it computes."""
    seen, fit = _observe(function)
    target: Target = function.target
    return LogProbsSeen(
        function=target.name,
        slots=frozenset(str(p.slot) for p in target.parameters if p.slot),
        where=log_probs_landmarks(function.script.source.tree, target),
        point=_point(seen, fit, function.table),
        run=function.run,
        words=function.words,
        facts={
            "extremes": seen.extremes,
            "plain": seen.plain,
            "padded": seen.padded,
            "unused_on_purpose": declares_unused(target, {p.name for p in target.parameters}),
        },
    )


def _observe(
    function: LogProbsImplementation,
) -> tuple[LogProbsObservation, tuple[Formula, float] | None]:
    """The answers for the size of vocabulary that a known formula reproduces."""
    seen = observe(function)
    fit = identify(seen, function.table)
    first = function.words
    for words in () if fit else function.sizes:
        with suppress(ScriptError):
            function.words = words
            other = observe(function)
            if better := identify(other, function.table):
                return other, better
    function.words = first
    return seen, fit


def identify(seen: LogProbsObservation, table: bool) -> tuple[Formula, float] | None:
    """The formula that reproduces the answers and how far it is off; None if none does."""
    scoring, got = seen.plain
    fits = [(f, off) for f in _formulas() if (off := _off(f, scoring, got, table)) < _LOW]
    close = [fit for fit in fits if fit[1] < _CLOSE]
    return close[0] if close else min(fits, key=lambda fit: fit[1], default=None)


def _formulas() -> Iterator[Formula]:
    """Candidates, the usual ones first: of several that fit, the first is taken."""
    for normaliser, pairing, reduction, sign in product(
        NORMALISERS, _PAIRS, _REDUCTIONS, (1.0, -1.0)
    ):
        if not (reduction.startswith("zero") and pairing == "same slot"):
            yield Formula(normaliser, pairing, reduction, sign)


def _off(formula: Formula, scoring: Scoring, got: Rows, table: bool) -> float:
    model, answer = formula.rows(scoring, table), np.array(got)
    if model.shape != answer.shape or not np.isfinite(answer).all():
        return float("inf")
    return float(np.abs(model - answer).max())


def _point(
    seen: LogProbsObservation, fit: tuple[Formula, float] | None, table: bool
) -> dict[str, str | float]:
    if fit is None:
        return {}
    formula, off = fit
    point: dict[str, str | float] = {"log_probs": "log-softmax"}
    if formula.normaliser != "vocabulary":
        point |= {"log_probs": "unnormalised" if formula.normaliser == "nothing" else "log-softmax"}
        point["normalised_over"] = formula.normaliser
    if formula.pairing != "same slot":
        point["pairing"] = formula.pairing
    if formula.sign < 0:
        point["sign"] = "negative"
    if formula.reduction in ("sum", "mean"):
        point["reduction"] = formula.reduction
    if off > _CLOSE:
        point["precision"] = "low"
    return point | _temperature(seen, formula, table)


def _temperature(seen: LogProbsObservation, formula: Formula, table: bool) -> dict[str, str]:
    """What a temperature does, where the function takes one."""
    if seen.tempered is None:
        return {}
    scoring, got = seen.tempered
    for name in ("applied", "on log-probs", "ignored"):
        trial = Formula(formula.normaliser, formula.pairing, formula.reduction, formula.sign, name)
        if _off(trial, scoring, got, table) < _LOW:
            return {"temperature": name}
    return {}
