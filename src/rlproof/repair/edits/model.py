"""An edit as replaced spans of the source text, and how several of them become one text.

Spans are offsets into the text as it was read. Everything outside them stays as it is to the
byte, comments and layout included, and edits whose spans are disjoint can be put together in
any order: that is what makes a search over *sets* of edits possible.
"""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Change:
    """Replace the text between two offsets. An empty span inserts.

    `reach` orders insertions at one offset: how far the other half of a pair of brackets is,
    to the right for an opening half (positive), to the left for a closing one (negative).
    """

    start: int
    stop: int
    text: str
    reach: int = 0


@dataclass(frozen=True, slots=True)
class Edit:
    """One repair: what it does in a few words, its changes, and the faults that it removes."""

    label: str
    changes: tuple[Change, ...]
    covers: frozenset[str] = frozenset()
    function: str = ""
    choice: str = ""
    """Why it is a matter of choice, if it is: such an edit is shown and never written."""
    chosen: str = ""
    """Where a number of it comes from that the script doesn't settle: written, and said."""

    def size(self, text: str) -> int:
        """How many tokens it puts in, takes out or replaces."""
        return sum(_tokens(change, text) for change in self.changes)


class ConflictError(Exception):
    """Two edits change the same text in different ways."""


def compose(text: str, edits: Iterable[Edit]) -> str:
    """The text with all edits made.

    Raises:
        ConflictError: spans overlap.
    """
    parts, position = [], 0
    for change in ordered(edits):
        if change.start < position:
            raise ConflictError
        parts += [text[position : change.start], change.text]
        position = change.stop
    return "".join([*parts, text[position:]])


def ordered(edits: Iterable[Edit]) -> list[Change]:
    """All changes as they follow each other in the text, each once."""
    changes = dict.fromkeys(change for edit in edits for change in edit.changes)
    numbered = list(enumerate(changes))
    numbered.sort(key=lambda pair: (pair[1].start, *_rank(pair[1]), _tie(*pair)))
    return [change for _, change in numbered]


def _rank(change: Change) -> tuple[int, int]:
    """At one offset: closing halves, inner first; opening ones, outer first; replacements."""
    if change.start < change.stop:
        return 2, 0
    return (0, -change.reach) if change.reach < 0 else (1, -change.reach)


def _tie(number: int, change: Change) -> int:
    return -number if change.reach < 0 else number


def _tokens(change: Change, text: str) -> int:
    old, new = _split(text[change.start : change.stop]), _split(change.text)
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return max(len(old), len(new)) - head - tail


def _split(text: str) -> list[str]:
    layout = {tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    tokens = tokenize.generate_tokens(io.StringIO(text.strip()).readline)
    found: list[str] = []
    with suppress(tokenize.TokenError, IndentationError):  # a part of an expression may be open
        found.extend(token.string for token in tokens if token.type not in layout)
    return found or text.split()
