"""A causal language model without weights: its logits are a known table.

The logits after a token are a line for that token plus a line for its place among the real
tokens of its row. So a token that is scored with the logits of another place, another row or
another word gets another number, and so does one before which padding was counted as text.

Shapes: B rows, P prompt slots, C completion slots, T = P + C, V words.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, log
from typing import Any

Rows = list[list[float]]
Ids = list[list[int]]
WORDS = 11
PAD = 0
EOS = WORDS - 1
_PLACES = 24
_MULTIPLIER, _INCREMENT, _MODULUS = 1664525, 1013904223, 1 << 32  # Numerical Recipes' generator


@dataclass(frozen=True, slots=True)
class Table:
    """`logits = tokens[token] + places[place]`, (V,) each."""

    tokens: Rows
    places: Rows

    def logits(self, token: int, place: int) -> list[float]:
        """The logits after this token, which has `place` real tokens before it."""
        return [a + b for a, b in zip(self.tokens[token], self.places[place], strict=True)]

    def wire(self) -> list[Any]:
        """The argument that the child turns into a model."""
        return ["model", {"tokens": self.tokens, "places": self.places, "pad": PAD, "eos": EOS}]


def wild() -> Table:
    """No two lines alike, all within ±6, so that any mix-up shows."""
    state, lines = 12345, []
    for _ in range(WORDS + _PLACES):
        line = []
        for _ in range(WORDS):
            state = (_MULTIPLIER * state + _INCREMENT) % _MODULUS
            line.append(round(6.0 * state / _MODULUS - 3.0, 2))
        lines.append(line)
    return Table(lines[:WORDS], lines[WORDS:])


def ladder() -> Table:
    """After n real tokens the logit of word 1 is n, all others are 0: for a reader's sums."""
    nothing = [[0.0] * WORDS for _ in range(WORDS)]
    return Table(nothing, [_line(place + 1.0) for place in range(_PLACES)])


def steep(size: float) -> Table:
    """The logit of word 1 is `size` everywhere, all others are 0."""
    return Table([[0.0] * WORDS for _ in range(WORDS)], [_line(size)] * _PLACES)


def _line(first: float) -> list[float]:
    return [0.0, first, *[0.0] * (WORDS - 2)]


def rung(count: int) -> float:
    """The log-prob of word 1 after `count` tokens of the ladder: n − ln(eⁿ + V − 1)."""
    return count - log(exp(count) + WORDS - 1)


@dataclass(frozen=True, slots=True)
class Texts:
    """Prompts and completions, token by token; padding is laid around them on request.

    `side` is left where prompts end in one column, and right where every row starts at once.
    """

    prompts: Ids
    completions: Ids
    table: Table
    temperature: float | None = None
    labels: Ids | None = None
    side: str = "left"

    def but(self, **changes: Any) -> Texts:
        """The same with some fields replaced."""
        return replace(self, **changes)

    @property
    def before(self) -> int:
        """P, the width of the prompts."""
        return max(map(len, self.prompts))

    @property
    def after(self) -> int:
        """C, the width of the completions."""
        return max(map(len, self.completions))

    def prompt_ids(self) -> Ids:
        """(B, P), padded on the left."""
        return [[PAD] * (self.before - len(row)) + row for row in self.prompts]

    def prompt_mask(self) -> Ids:
        """1 where `prompt_ids` holds a real token."""
        return [[0] * (self.before - len(row)) + [1] * len(row) for row in self.prompts]

    def completion_ids(self) -> Ids:
        """(B, C), padded on the right."""
        return [row + [PAD] * (self.after - len(row)) for row in self.completions]

    def completion_mask(self) -> Ids:
        """1 where `completion_ids` holds a real token."""
        return [[1] * len(row) + [0] * (self.after - len(row)) for row in self.completions]

    def ids(self) -> Ids:
        """(B, T): both, one after the other."""
        if self.side == "left":
            return [p + c for p, c in zip(self.prompt_ids(), self.completion_ids(), strict=True)]
        return [(row + [PAD] * self._width())[: self._width()] for row in self._joined()]

    def attention(self) -> Ids:
        """1 where `ids` holds a real token."""
        if self.side == "left":
            return [p + c for p, c in zip(self.prompt_mask(), self.completion_mask(), strict=True)]
        return [([1] * len(row) + [0] * self._width())[: self._width()] for row in self._joined()]

    def real(self) -> Ids:
        """1 where `ids` holds a token of the completion."""
        rows = []
        for line, start, row in zip(self.ids(), self.starts(), self.completions, strict=True):
            rows.append([int(start <= i < start + len(row)) for i in range(len(line))])
        return rows

    def starts(self) -> list[int]:
        """Where the completion of each row starts in `ids`."""
        if self.side == "left":
            return [self.before] * len(self.prompts)
        return [len(row) for row in self.prompts]

    def _joined(self) -> Ids:
        return [p + c for p, c in zip(self.prompts, self.completions, strict=True)]

    def _width(self) -> int:
        return max(map(len, self._joined()))


def places(attention: Ids) -> Ids:
    """How many real tokens stand before each slot, as the model counts: (B, T)."""
    found = []
    for row in attention:
        total, line = 0, []
        for real in row:
            total += real
            line.append(max(total - 1, 0))
        found.append(line)
    return found
