"""A document's text and places in it, in the units that the client counts characters in."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator

from lsprotocol import types

from rlproof.judge.findings import Replacement
from rlproof.repair.lines import split

Units = Callable[[str], int]
"""How many units a text has: UTF-16 code units, unless client and server agree on others."""
_MARK = "\ufeff"


class Text:
    """The text of one document. Lines count from 1, as in reports, and end as editors see it.

    Args:
        whole: as the client sent it.
        units: of its characters.
    """

    def __init__(self, whole: str, units: Units) -> None:
        self.whole = whole
        self.lines = [line for line, _ in split(whole)]
        self._ends = [end for _, end in split(whole)]
        self._units = units

    def position(self, line: int, column: int) -> types.Position:
        """A place as the client counts it.

        Args:
            line: from 1; one behind the last is the end of the text.
            column: characters before it, without a byte-order mark; at most those of the line.
        """
        if line > len(self.lines):
            return self._end()
        text = self.lines[line - 1]
        skipped = int(line == 1 and text.startswith(_MARK))
        return types.Position(line - 1, self._units(text[: column + skipped]))

    def _end(self) -> types.Position:
        return types.Position(len(self.lines) - 1, self._units(self.lines[-1]))

    def span(self, line: int, end_line: int) -> types.Range:
        """From the first to the last character that is no white space of some lines."""
        end_line = max(line, min(end_line, len(self.lines)))
        first, last = (self.lines[min(n, len(self.lines)) - 1] for n in (line, end_line))
        first, last = first.removeprefix(_MARK), last.removeprefix(_MARK)
        start = self.position(line, len(first) - len(first.lstrip()))
        return types.Range(start, self.position(end_line, len(last.rstrip())))

    def edit(self, one: Replacement) -> types.TextEdit:
        """A replacement as the client makes it, with the newlines of the document."""
        start = self.position(one.line, one.column - 1)
        end = self.position(one.end_line, one.end_column - 1)
        return types.TextEdit(types.Range(start, end), one.text.replace("\n", self._newline()))

    def _newline(self) -> str:
        return next((end for end in self._ends if end), "\n")

    def edits_to(self, after: str) -> Iterator[types.TextEdit]:
        """Changes of whole lines that make another text of this one."""
        old, new = ([line + end for line, end in split(text)] for text in (self.whole, after))
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        for tag, i1, i2, j1, j2 in matcher.get_opcodes():
            if tag != "equal":
                where = types.Range(self._begin(i1), self._begin(i2))
                yield types.TextEdit(where, "".join(new[j1:j2]))

    def _begin(self, index: int) -> types.Position:
        """Before the line with this index, or the end."""
        return types.Position(index, 0) if index < len(self.lines) else self._end()


def inside(place: types.Position, span: types.Range) -> bool:
    """Whether a place is in a span, its end included."""
    start, end = span.start, span.end
    spot = (place.line, place.character)
    return (start.line, start.character) <= spot <= (end.line, end.character)


def share_a_line(one: types.Range, other: types.Range) -> bool:
    """Whether two spans meet on a line: a cursor may stand before the code of its line."""
    return bool(one.start.line <= other.end.line and other.start.line <= one.end.line)
