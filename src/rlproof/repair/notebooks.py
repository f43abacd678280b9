"""A repaired notebook: which cell each edited line is in, and the JSON with those cells replaced.

Everything outside the sources of the edited cells stays as it is to the byte: outputs, metadata,
layout. Magics keep their spelling; an edit that touches one is refused.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rlproof.errors import RlproofError
from rlproof.read import notebook
from rlproof.read.source import Cell, Source, parse, shown
from rlproof.repair.lines import WriteError, respelled, split

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
_MARK = b"\xef\xbb\xbf"


def cells_after(before: str, cells: Sequence[Cell], after: str) -> tuple[Cell, ...] | None:
    """Where the cells lie in an edited source; None where an edit reaches over two of them.

    New lines between two cells end the first one if they are indented, else begin the second.
    """
    old, new = before.split("\n")[:-1], after.split("\n")[:-1]
    home = [place for place, cell in enumerate(cells) for _ in range(cell.count)]
    counts = [0] * len(cells)
    for _, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        homes = {home[i] for i in range(i1, i2)} or {_between(home, i1, new[j1:j2])}
        if len(homes) == 1:
            counts[homes.pop()] += j2 - j1
        elif j2 - j1 == i2 - i1:
            for i in range(i1, i2):
                counts[home[i]] += 1
        else:
            return None
    found, first = [], 1
    for cell, count in zip(cells, counts, strict=True):
        found.append(Cell(cell.number, first, count))
        first += count
    return tuple(found) if all(_stands_alone(new, cell) for cell in found) else None


def _between(home: Sequence[int], at: int, put: Sequence[str]) -> int:
    if at == 0 or at == len(home):
        return home[min(at, len(home) - 1)]
    first = next((line for line in put if line.strip()), "")
    return home[at - 1] if first.startswith((" ", "\t")) else home[at]


def _stands_alone(lines: Sequence[str], cell: Cell) -> bool:
    try:
        parse("", "\n".join(_of(lines, cell)))
    except (SyntaxError, RlproofError):
        return False
    return bool(cell.count)


def _of(lines: Sequence[str], cell: Cell) -> Sequence[str]:
    return lines[cell.first - 1 : cell.first - 1 + cell.count]


def changed_cells(
    before: str, cells: Sequence[Cell], after: str
) -> list[tuple[int, Sequence[str], Sequence[str]]]:
    """Number, old lines and new lines of every cell that an edit changes."""
    now = cells_after(before, cells, after)
    old, new = before.split("\n"), after.split("\n")
    pairs = zip(cells, now or (), strict=bool(now))
    found = ((one.number, _of(old, one), _of(new, other)) for one, other in pairs)
    return [(number, was, is_now) for number, was, is_now in found if was != is_now]


@dataclass(frozen=True, slots=True)
class RawBook:
    """The bytes of one notebook, and the source that was read from them."""

    source: Source
    data: bytes
    encoding: str = "utf-8"

    @property
    def path(self) -> str:
        """The file."""
        return self.source.path

    def edited(self, text: str) -> bytes:
        """The bytes of the notebook whose joined source is this text.

        Raises:
            WriteError: an edit reaches over cells or touches a magic, or the JSON is unusual.
        """
        if text == self.source.text:
            return self.data
        changed = changed_cells(self.source.text, self.source.cells, text)
        whole = self.data.removeprefix(_MARK).decode("utf-8")
        spans = dict(enumerate(_cells(whole), 1))
        edits = []
        for number, old, new in changed:
            start, stop = spans[number]
            edits.append((start, stop, self._value(whole[start:stop], old, new)))
        for start, stop, value in sorted(edits, reverse=True):
            whole = whole[:start] + value + whole[stop:]
        made = (_MARK if self.data.startswith(_MARK) else b"") + whole.encode("utf-8")
        if not changed or _read_back(self.path, made) != text:
            raise WriteError(
                f"{shown(self.path)}: the edit can't be told apart by cells, so the notebook is "
                "not rewritten"
            )
        return made

    def _value(self, value: str, old: Sequence[str], new: Sequence[str]) -> str:
        """The JSON of a cell's source with its lines replaced, laid out as it was."""
        source = json.loads(value)
        whole = source if isinstance(source, str) else "".join(source)
        body = whole.rstrip("\r\n")
        raw = split(body)
        magics = {i for i, (line, _) in enumerate(raw) if line != old[i]}
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        for tag, i1, i2, _, _ in matcher.get_opcodes():
            if tag != "equal" and magics & set(range(i1, i2)):
                raise WriteError(f"{shown(self.path)}: the edit touches a magic of a cell")
        made = respelled(raw, list(old), list(new)) + whole[len(body) :]
        plain = value.isascii() and "\\u" in value
        if isinstance(source, str):
            return json.dumps(made, ensure_ascii=plain)
        return _array(value, made.splitlines(keepends=True), plain)


def _array(value: str, lines: list[str], plain: bool) -> str:
    """A JSON array of strings with the layout of another one; kept lines keep their spelling."""
    spans = list(_items(value, 0))
    spelt = {json.loads(value[start:stop]): value[start:stop] for start, stop in spans}
    head, tail = value[: spans[0][0]], value[spans[-1][1] :]
    between = value[spans[0][1] : spans[1][0]] if len(spans) > 1 else "," + (head[1:] or " ")
    return (
        head + between.join(spelt.get(x) or json.dumps(x, ensure_ascii=plain) for x in lines) + tail
    )


def _cells(text: str) -> Iterator[tuple[int, int]]:
    """Where the source of each cell is, in the order in which they are numbered."""
    book = dict(_members(text, _after_space(text, 0)))
    arrays = [book["cells"]] if "cells" in book else []
    if "worksheets" in book and not any(_items(text, s) for s, _ in arrays):
        sheets = _items(text, book["worksheets"][0])
        arrays = [dict(_members(text, start))["cells"] for start, _ in sheets]
    for start, _ in arrays:
        for cell, _ in _items(text, start):
            members = dict(_members(text, cell))
            yield members.get("source") or members.get("input") or (cell, cell)


def _members(text: str, at: int) -> Iterator[tuple[str, tuple[int, int]]]:
    """Keys of the object that begins here, each with where its value is."""
    at = _after_space(text, at + 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        start = _after_space(text, _after_space(text, at) + 1)
        stop = _DECODER.raw_decode(text, start)[1]
        yield key, (start, stop)
        at = _after_space(text, stop)
        at = _after_space(text, at + 1) if text[at] == "," else at


def _items(text: str, at: int) -> Iterator[tuple[int, int]]:
    """Where the items of the array that begins here are."""
    at = _after_space(text, at + 1)
    while text[at] != "]":
        stop = _DECODER.raw_decode(text, at)[1]
        yield at, stop
        at = _after_space(text, stop)
        at = _after_space(text, at + 1) if text[at] == "," else at


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _read_back(path: str, data: bytes) -> str:
    try:
        return notebook.load(path, data).text
    except RlproofError:
        return ""


def load(source: Source, data: bytes) -> RawBook:
    """The bytes behind a notebook's source, which must still be those that were read.

    Raises:
        WriteError: the file changed.
    """
    if _read_back(source.path, data) != source.text:
        raise WriteError(
            f"{shown(source.path)}: changed while it was being checked, so it was left alone; "
            "run it again"
        )
    return RawBook(source, data)
