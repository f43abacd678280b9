"""What a function reads off a model: which logits score which tokens, and how.

Every candidate is computed from the known logits by plain arithmetic and compared with what
the function returned for three rows of random tokens. No two candidates agree there, so that
one which fits *is* what the function computes.

Shapes: B rows, T slots, V words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from rlproof.bind.extraction import ExtractionImplementation
from rlproof.bind.model import Texts
from rlproof.faults.model import Evidence, rounded
from rlproof.faults.seen import ExtractionSeen, Rows, ScriptError
from rlproof.judge.heat import constant_heat
from rlproof.judge.readings import (
    CLOSE,
    LOW,
    SHIFTS,
    Array,
    Reading,
    candidates,
    core,
    is_usual,
    reduced,
    windows,
)
from rlproof.probe.extraction import STEEP, TEMPERATURE, cliff, padded, steps, whole
from rlproof.read.anatomy import declares_unused
from rlproof.read.extraction import names_log_probs, pads_left
from rlproof.read.gradients import trains_a_loss
from rlproof.read.names import Slot
from rlproof.read.tokens import extraction_landmarks

_SPLITS = (Slot.START, Slot.KEEP, Slot.PROMPT_TOKENS, Slot.COMPLETION_TOKENS, Slot.COMPLETION_MASK)
_FIXED_SPLITS = (Slot.KEEP, Slot.PROMPT_TOKENS, Slot.COMPLETION_TOKENS)
_UNLIKE = {
    "nothing": "unnormalised",
    "probabilities": "probabilities",
    "twice": "softmax twice",
    "vocabulary": "pick",
}
_HALF = 3e-4  # what half precision leaves on the ladder
_AT_THE_END = re.compile(r"\b(last|final|trailing)\b|\b(the|at|its|their) ends?\b", re.IGNORECASE)
_LADDER = "after n tokens the model's logit of word 1 is n, that of 10 others 0; all tokens are "


@dataclass(frozen=True, slots=True)
class Fit:
    """A candidate that fits, which part of the answer it is, and how far it is off."""

    reading: Reading
    index: int
    off: float
    masked: bool
    """Whether the function fills the slots around its tokens with 0."""


def judge(function: ExtractionImplementation) -> ExtractionSeen | None:
    """Ask one function; None if no candidate reproduces what it returns.

    Raises:
        ScriptError: the function raised on ordinary texts.
    """
    texts = whole()
    fit = identify(function, texts)
    if fit is None:
        return _of_constant_heat(function, texts)
    case = _Case(function, fit)
    problems = dict(case.problems())
    target = function.target
    return ExtractionSeen(
        function=target.name,
        slots=frozenset(map(str, function.slots)),
        where=extraction_landmarks(function.script.source.tree, target),
        point=case.point,
        proofs=problems,
        facts={"trains": trains_a_loss(function.script, target), "lengths": case.lengths()},
    )


def _of_constant_heat(function: ExtractionImplementation, texts: Texts) -> ExtractionSeen | None:
    found, parameter = constant_heat(function, texts), function.target.parameter(Slot.TEMPERATURE)
    if found is None:
        return None
    heat, reading = found
    if parameter is None:
        return _at_its_own_heat(function, heat)
    if declares_unused(function.target, {parameter.name}):
        return None
    hot = steps().but(temperature=TEMPERATURE if abs(heat - TEMPERATURE) > LOW else 1.0)
    total = len(hot.ids()[0])
    moved = replace(reading, last=total - (len(texts.ids()[0]) - reading.last))
    if reading.first > 1:
        moved = replace(moved, first=reading.first + hot.before - texts.before)
    got, right = moved.rows(hot.but(temperature=heat))[0], moved.rows(hot)[0]
    asked = _asked(hot, function.manner.one_row, "token")
    target = function.target
    return ExtractionSeen(
        function=target.name,
        slots=frozenset(map(str, function.slots)),
        where=extraction_landmarks(function.script.source.tree, target),
        point={"log_probs": "log-softmax", "temperature": f"always {heat:g}"},
        proofs={"temperature constant": Evidence(asked, _shown(got), _shown(right))},
    )


def _at_its_own_heat(function: ExtractionImplementation, heat: float) -> ExtractionSeen:
    """A function that nobody tells a temperature, and whose own one fits: there is no fault."""
    return ExtractionSeen(
        function=function.target.name,
        slots=frozenset(map(str, function.slots)),
        where=extraction_landmarks(function.script.source.tree, function.target),
        point={"log_probs": "log-softmax", "temperature": f"always {heat:g}"},
        proofs={},
    )


def identify(function: ExtractionImplementation, texts: Texts) -> Fit | None:
    """The candidate that reproduces a part of the answer: of several parts a sound one."""
    found: list[Fit] = []
    for index, rows in enumerate(function.answers([texts])[0]):
        fits = list(_fits(function, texts, rows, index))
        close = [fit for fit in fits if fit.off < CLOSE]
        found += close[:1] or sorted(fits, key=lambda fit: fit.off)[:1]
    sound = [fit for fit in found if _Case(function, fit).problem is None]
    return next(iter([*sound, *found]), None)


def _fits(
    function: ExtractionImplementation, texts: Texts, rows: Rows, index: int
) -> Iterator[Fit]:
    if len({len(row) for row in rows}) != 1 or not all(isfinite(x) for row in rows for x in row):
        return
    got, masked = core(np.array(rows))
    for reading in candidates(function, texts):
        values = reading.values(texts)[: len(got)]
        for first, last, reduction in windows(got.shape[1], values.shape[1]):
            part = reduced(values[:, first:last], reduction)
            off = float(np.abs(part - got).max())
            if off < (CLOSE if reduction != "token" and not is_usual(reading) else LOW):
                found = replace(reading, first=first, last=last, reduction=reduction)
                yield Fit(found, index, off, masked)


class _Case:
    """One function with the candidate that fits, and everything that is still to be asked."""

    def __init__(self, function: ExtractionImplementation, fit: Fit) -> None:
        self.function = function
        self.fit = fit
        self.reading = fit.reading
        self.texts = whole()
        self.scored = self._scored()
        self.point = self._point()
        self.problem = self._formula_problem()
        """What is off on plain texts, if anything is."""

    def _scored(self) -> str:
        """Which tokens it scores, by where the completion stands."""
        start, end, total = self.texts.before, len(self.texts.ids()[0]), self.reading
        if total.first <= 1 and total.last == end:
            return "all"
        if (total.first, total.last) == (start, end):
            return "completion"
        early = total.first == start - 1 and total.last == end - 1
        return "one early" if early else "another part"

    def _point(self) -> dict[str, str | float]:
        reading = self.reading
        names = {"nothing": "unnormalised", "probabilities": "probabilities"}
        point: dict[str, str | float] = {
            "log_probs": names.get(reading.normaliser, "log-softmax"),
            "pairing": SHIFTS[reading.shift],
            "tokens": self.scored,
        }
        if reading.labels:
            point["pairing"] = {1: "same slot", 0: "next token"}.get(reading.shift, "other slot")
        if reading.normaliser in ("slots", "rows"):
            point["normalised_over"] = reading.normaliser
        if reading.sign < 0:
            point["sign"] = "negative"
        if reading.reduction != "token":
            point["reduction"] = reading.reduction
        if self.fit.off > CLOSE:
            point["precision"] = "low"
        return point

    def problems(self) -> Iterator[tuple[str, Evidence]]:
        """What is off, each with a proof; the first ones hide what comes after them."""
        reading = self.reading
        if self.problem:
            word = 2 if self.problem == "pick" else 1  # word 1 is the likeliest
            if proof := self._proof(steps(word=word), self._healthy()):
                yield self.problem, proof
        elif self.fit.off > CLOSE:
            if proof := self._proof(steps(), self._healthy(), least=_HALF):
                yield "precision", proof
        if Slot.TEMPERATURE in self.function.slots:
            yield from self._temperature()
        if reading.normaliser == "vocabulary" and reading.pick == "token":
            yield from self._cliffs()
        if self.problem is None and not reading.labels:
            yield from self._padding()
        if not self.function.differentiable:
            yield "no gradient", Evidence(
                "a model whose parameters require a gradient: whether the log-probs do",
                "no", "yes",
            )  # fmt: skip

    def _formula_problem(self) -> str | None:
        reading, slots = self.reading, self.function.slots
        if reading.normaliser in ("slots", "rows"):
            return "axis"
        promised = names_log_probs(self.function.target.name)
        if reading.normaliser != "vocabulary" or reading.pick != "token":
            return _UNLIKE[reading.normaliser] if promised else None
        if reading.shift not in ((0, 1) if reading.labels else (0,)):
            return "pairing"
        if self._is_front():
            return "front"
        if self.scored == "one early" and slots & set(_FIXED_SPLITS) and not self.fit.masked:
            return "window"
        if self._is_mask_off():
            return "mask"
        told = slots & set(_SPLITS) and reading.reduction != "token" and not reading.labels
        return "prompt" if told and self.scored == "all" else None

    def _is_front(self) -> bool:
        """Whether it is asked for the last tokens, in so many words, and returns the first.

        Without the words they may be those of a decoder, whose first tokens are the response.
        """
        target, reading = self.function.target, self.reading
        kept = Slot.KEEP in self.function.slots and not self.fit.masked
        first = (reading.first, reading.last) == (1, 1 + self.texts.after)
        text = f"{target.name.replace('_', ' ')} {target.doc}"
        return kept and first and self.texts.before > 1 and bool(_AT_THE_END.search(text))

    def _is_mask_off(self) -> bool:
        """Whether a mask of the tokens themselves leaves the first of them out, and no other."""
        texts, manner = self.texts, self.function.manner
        late = (self.reading.first, self.reading.last) == (texts.before + 1, len(texts.ids()[0]))
        masked = self.fit.masked and Slot.COMPLETION_MASK in self.function.slots
        return late and masked and manner.span == "whole" and self.reading.reduction == "token"

    def _healthy(self) -> Reading:
        """The same, but right: what the proof expects."""
        reading = self.reading
        shift = reading.shift if reading.labels and reading.shift == 1 else 0
        return replace(
            reading, shift=shift, normaliser="vocabulary", pick="token", temperature="applied"
        )

    def _moved(self, reading: Reading, texts: Texts) -> Reading:
        """The same window on texts of other widths."""
        total = len(texts.ids()[0])
        last = total - (len(self.texts.ids()[0]) - reading.last)
        first = reading.first
        if self.scored != "all":
            first += texts.before - self.texts.before
        if self.problem in ("window", "prompt", "front", "mask"):
            first, last = texts.before, total
        return replace(reading, first=first, last=last)

    def _got(self, texts: Texts) -> Array:
        rows = self.function.answers([texts])[0][self.fit.index]
        return core(np.array(rows))[0] if len({len(row) for row in rows}) == 1 else np.array([[]])

    def _proof(self, texts: Texts, healthy: Reading, least: float = 1e-6) -> Evidence | None:
        """The first row on the ladder: what came out and what should have."""
        try:
            got = self._got(texts)[0]
        except (ScriptError, IndexError):
            return None
        right = self._moved(healthy, texts).rows(texts)[0]
        if got.shape == right.shape and np.abs(got - right).max() < least:
            return None
        return Evidence(_asked(texts, self.function.manner.one_row, self.reading.reduction),
                        _shown(got), _shown(right))  # fmt: skip

    def _temperature(self) -> Iterator[tuple[str, Evidence]]:
        hot = self.texts.but(temperature=TEMPERATURE)
        got = self._got(hot)
        if not got.size:
            return
        for name in ("applied", "ignored", "multiplied", "twice", "on log-probs"):
            model = replace(self.reading, temperature=name).rows(hot)[: len(got)]
            if model.shape == got.shape and np.abs(model - got).max() < LOW:
                self.point["temperature"] = name
                proof = self._proof(steps().but(temperature=TEMPERATURE), self._healthy())
                said = name == "ignored" and self._is_unused_on_purpose()
                if name != "applied" and proof and not said:
                    yield f"temperature {name}", proof
                return

    def _is_unused_on_purpose(self) -> bool:
        target = self.function.target
        heat = target.parameter(Slot.TEMPERATURE)
        return heat is not None and declares_unused(target, {heat.name})

    def _cliffs(self) -> Iterator[tuple[str, Evidence]]:
        for word, right in ((1, 0.0), (2, -STEEP)):
            try:
                got = np.array(self.function.answers([cliff(word)])[0][self.fit.index][0])
            except (ScriptError, IndexError):
                return
            bad = [float(x) for x in got.ravel() if not isfinite(x)]
            if bad:
                asked = f"the model's logit of word 1 is {STEEP:g}, that of 10 others 0: "
                asked += f"log-prob of token {word}"
                yield "overflow", Evidence(asked, str(bad[0]), self.reading.sign * right + 0.0)
                return

    def _padding(self) -> Iterator[tuple[str, Evidence]]:
        slots, reading = self.function.slots, self.reading
        told = slots & {Slot.ATTENTION, Slot.PAD, Slot.PROMPT_MASK, Slot.TOKENIZER}
        if ragged_counts(self.function) and self.scored == "completion":
            yield from self._one_window()
        if self.function.manner.one_row or not (told or Slot.COMPLETION_MASK in slots):
            return
        ragged = self.function.manner.count != "number" and Slot.START in slots
        right_side = ragged or self.scored != "completion"
        texts = padded(left=bool(told) and not right_side, side="right" if ragged else "left")
        try:
            rows = self.function.answers([texts])[0][self.fit.index]
        except (ScriptError, IndexError):
            return
        if reading.reduction != "token":
            yield from self._padded_sums(rows, texts)
        elif self.scored == "completion" and not ragged:
            yield from self._attended(rows, texts)

    def lengths(self) -> tuple[str, float, float] | None:
        """What rows padded on the right show of the lengths that are given, in padded slots.

        `read` where the model counts padding as text, `masked` where it doesn't; then the last
        number of the shortest row, and what it is with the padding masked. None where neither fits.
        """
        reading = self.reading
        if Slot.LENGTHS not in self.function.slots or self.scored != "all":
            return None
        texts = padded(left=True, side="right")
        try:
            got = np.array(self.function.answers([texts])[0][self.fit.index])
        except (ScriptError, IndexError, ValueError):
            return None
        right, wrong = (reading.values(texts, attended=a) for a in (False, True))
        right, wrong = right[:, -got.shape[-1] :], wrong[:, -got.shape[-1] :]
        if got.shape != right.shape or reading.reduction != "token":
            return None
        row = int(np.argmin([sum(line) for line in texts.attention()]))
        for state, meant in (("masked", right), ("read", wrong)):
            if np.abs(got - meant).max() < LOW and np.abs(right - wrong).max() > LOW:
                return state, float(got[row, -1]), float(right[row, -1])
        return None

    def _one_window(self) -> Iterator[tuple[str, Evidence]]:
        """Prompts of several lengths, padded on the right: one window for all of them, or not."""
        texts = padded(left=True, side="right")
        try:
            got = np.array(self.function.answers([texts])[0][self.fit.index])
        except (ScriptError, IndexError, ValueError):
            return
        values, starts = self.reading.values(texts), texts.starts()
        last = values[:, max(starts) : max(starts) + texts.after]
        if got.shape != last.shape or not np.abs(got - last).max() < LOW:
            return
        row = min(range(len(starts)), key=starts.__getitem__)
        end = starts[row] + len(texts.completions[row])
        yield (
            "one window",
            Evidence(
                f"rows padded on the right, prompts of {', '.join(map(str, starts))} tokens: "
                f"log-probs returned for the {len(texts.completions[row])} tokens of the row with "
                f"{starts[row]}",
                _shown(got[row][: end - starts[row]]),
                _shown(values[row][starts[row] : end]),
            ),
        )

    def _attended(self, rows: Rows, texts: Texts) -> Iterator[tuple[str, Evidence]]:
        """Whether the real tokens behind a padded prompt know of the padding."""
        if len({len(row) for row in rows}) != 1:
            return
        width, real = texts.after, np.array(texts.completion_mask(), dtype=bool)
        got = np.array(rows)
        got = got[:, -width:] if self._ends_last(got) else got[:, -width - 1 : -1]
        if got.shape != real.shape:
            return
        right = self.reading.values(texts)[:, -width:]
        wrong = self.reading.values(texts, attended=True)[:, -width:]
        if _agree(got, right, real):
            self.point["attention"] = "masked"
            kept = np.abs(got[~real]).max() > 0
            self.point["padded_slots"] = "kept" if kept else "zero"
        elif _agree(got, wrong, real):
            self.point["attention"] = "padding is read"
            told = self.function.slots & {Slot.ATTENTION, Slot.PROMPT_MASK}
            if not told or not pads_left(self.function.script, self.function.slots):
                return  # equal prompts, padded on the right, would be scored right
            if proof := self._proof(steps(left=True), self._healthy()):
                yield "attention", proof

    def _ends_last(self, got: Array) -> bool:
        """Whether the last column is the last token, not a filler."""
        return not (self.fit.masked and got.shape[1] > self.texts.after and
                    not np.abs(got[:, -1]).max() > 0)  # fmt: skip

    def _padded_sums(self, rows: Rows, texts: Texts) -> Iterator[tuple[str, Evidence]]:
        if any(len(row) != 1 for row in rows):
            return
        got = np.array(rows)[:, 0]
        values = self.reading.values(texts)
        real = np.array(texts.real() if self.scored == "completion" else texts.attention())
        start = self.reading.first
        part, counted = values[:, start:], real[:, start:]
        sums, everything = (part * counted).sum(1), part.sum(1)
        mean = self.reading.reduction == "mean"
        right = sums / counted.sum(1) if mean else sums
        if np.abs(got - right).max() < LOW:
            self.point["padding"] = "left out"
            return
        width = part.shape[1] if mean else 1
        proof = self._sum_proof()
        if Slot.COMPLETION_MASK not in self.function.slots:
            return  # a text that is scored alone has no padding
        if proof and np.abs(got - everything / width).max() < LOW:
            yield "padding in sum", proof
        elif proof and mean and np.abs(got - sums / width).max() < LOW:
            yield "padding in divisor", proof

    def _sum_proof(self) -> Evidence | None:
        texts = steps(right=True)
        try:
            got = self._got(texts)[0]
        except (ScriptError, IndexError):
            return None
        whole_row = self._moved(self._healthy(), texts).values(texts)[0]
        first = texts.before if self.scored == "completion" else self.reading.first
        real = whole_row[first:][np.array(texts.attention()[0][first:], dtype=bool)]
        right = real.mean() if self.reading.reduction == "mean" else real.sum()
        return Evidence(_asked(texts, False, self.reading.reduction), _shown(got),
                        _shown(np.array([right])))  # fmt: skip


def ragged_counts(function: ExtractionImplementation) -> bool:
    """Whether it is told where the completion of every row starts, and how many tokens to keep."""
    return function.manner.count == "starts" and not function.manner.one_row


def _agree(got: Array, other: Array, real: NDArray[np.bool_]) -> bool:
    return bool(np.abs(got - other)[real].max() < LOW)


def _asked(texts: Texts, one_row: bool, reduction: str) -> str:
    prompt, completion = len(texts.prompts[0]), len(texts.completions[0])
    padding = texts.before - prompt, texts.after - completion
    text = (
        f"{_LADDER}{texts.completions[0][0]}; a prompt of {prompt} and a completion of {completion}"
    )
    text += " behind one slot of padding" * bool(padding[0])
    text += " before one slot of padding" * bool(padding[1])
    text += f", temperature {texts.temperature:g}" if texts.temperature else ""
    what = "log-probs" if reduction == "token" else f"{reduction} of the log-probs"
    return f"{text}: {what} returned" + ("" if one_row else " for that row")


def _shown(numbers: Array) -> float | list[float]:
    found = [rounded(float(x), 5) for x in numbers]
    return found[0] if len(found) == 1 else found
