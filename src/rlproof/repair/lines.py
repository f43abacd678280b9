"""Lines with their own newlines: what an edit leaves alone keeps its very characters."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from rlproof.errors import RlproofError

_NEWLINE = re.compile(r"\r\n|\r|\n")
Line = tuple[str, str]
"""A line and its newline; the last one has none, and may be empty."""


class WriteError(RlproofError):
    """A repaired file can't be written; the original is untouched."""


def split(text: str) -> list[Line]:
    """The lines of a text."""
    found, position = [], 0
    for match in _NEWLINE.finditer(text):
        found.append((text[position : match.start()], match[0]))
        position = match.end()
    return [*found, (text[position:], "")]


def respelled(old: Sequence[Line], plain: Sequence[str], new: Sequence[str]) -> str:
    """The new lines as text: kept ones as they were spelt, others with the newlines around them.

    Args:
        old: the lines as they are in the file.
        plain: the same lines as they were edited.
        new: the lines after the edit.
    """
    out: list[Line] = []
    matcher = difflib.SequenceMatcher(None, plain, new, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            out += old[i1:i2]
        else:
            ends = (_end(old, min(i1 + place, max(i2 - 1, i1))) for place in range(j2 - j1))
            out += zip(new[j1:j2], ends, strict=True)
    head = "".join(line + (end or _end(old, 0)) for line, end in out[:-1])
    return head + out[-1][0]


def _end(old: Sequence[Line], at: int) -> str:
    """The newline of a line, or of the nearest one before it."""
    for _, end in reversed(old[: at + 1]):
        if end:
            return end
    return next((end for _, end in old if end), "\n")
