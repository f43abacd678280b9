"""Texts to score with the stand-in model: without padding, with it, and for a reader's sums.

Shapes: B rows, P prompt slots, C completion slots.
"""

from __future__ import annotations

from rlproof.bind.model import Texts, ladder, steep, wild

TEMPERATURE = 2.0
STEEP = 120.0
"""A logit beyond the range of exp in float32."""
_PROMPTS = [[4, 7, 2, 9, 5], [8, 3, 6, 1, 4], [2, 5, 8, 3, 9]]
_COMPLETIONS = [[6, 1, 8, 3], [9, 2, 5, 7], [1, 7, 4, 6]]
_LABELS = [
    [3, 8, 5, 1, 9, 2, 7, 4, 6],
    [5, 2, 9, 7, 1, 6, 3, 8, 2],
    [7, 1, 4, 6, 8, 3, 5, 9, 2],
]
_ENDS = [2, 4, 3]
_STARTS = [2, 0, 4]


def whole() -> Texts:
    """Three rows of nine tokens, no padding; labels that are no part of the rows."""
    return Texts(_PROMPTS, _COMPLETIONS, wild(), labels=_LABELS)


def padded(*, left: bool, side: str = "left") -> Texts:
    """The same with shorter completions, and shorter prompts too where `left`."""
    prompts = [row[start:] for row, start in zip(_PROMPTS, _STARTS, strict=True)]
    cut = [row[:end] for row, end in zip(_COMPLETIONS, _ENDS, strict=True)]
    return Texts(prompts if left else _PROMPTS, cut, wild(), side=side)


def steps(*, left: bool = False, right: bool = False, word: int = 1) -> Texts:
    """One word on the ladder: prompts of 2, completions of 3, the first row perhaps shorter."""
    prompts = [[word] * (1 if left else 2), [word] * 2, [word] * 2]
    completions = [[word] * (2 if right else 3), [word] * 3, [word] * 3]
    return Texts(prompts, completions, ladder())


def cliff(word: int) -> Texts:
    """All tokens are this word, and word 1 has a large logit everywhere."""
    return Texts([[word] * 2] * 3, [[word] * 3] * 3, steep(STEEP))
