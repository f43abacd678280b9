"""Whole lines of a file, once or for as long as it grows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

Wait = Callable[[], bool]
"""Called at the end of a file that is followed: sleeps, and says whether to go on."""
LONGEST = 1 << 28
"""Bytes of one of our own records; the longest hold a whole group of long completions."""
PLAIN = 1 << 24
"""Bytes of any other line: what is parsed can take thirty times its own size."""
TOO_LONG = b""
"""Stands for a line that is longer. Blank lines are left out, so that it is never one of them."""
LENGTHY = f"a line of more than {PLAIN >> 20} MB"
"""What a reader says of it."""
_OURS = b'{"rlproof":'
_BLOCK = 1 << 20


class _Line:
    """A line as it comes; of one that is too long nothing is kept."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._lost = False

    def add(self, raw: bytes) -> None:
        """The next part of it."""
        if self._lost:
            return
        self._held += raw
        if len(self._held) > (LONGEST if self._held.startswith(_OURS) else PLAIN):
            self._held, self._lost = bytearray(), True

    def taken(self, number: int) -> Iterator[tuple[int, bytes]]:
        """It has ended: its number and text, unless it is blank."""
        text, lost = bytes(self._held), self._lost
        self._held, self._lost = bytearray(), False
        text = text.strip()
        if text or lost:
            yield number, text


def lines(path: str, wait: Wait | None = None) -> Iterator[tuple[int, bytes]]:
    """Number from 1 and text of every line that is not blank, in the memory of the longest.

    For a line longer than `PLAIN`, or a record of ours longer than `LONGEST`, `TOO_LONG` comes.
    With `wait` the file is followed: a line without its end is left until that comes, and a file
    that became shorter is read from its start again.
    """
    number, line = 0, _Line()
    with open(path, "rb") as file:
        while True:
            raw = file.readline(_BLOCK)
            line.add(raw)
            if raw.endswith(b"\n"):
                number += 1
                yield from line.taken(number)
            elif not raw:
                if wait is None or not wait():
                    yield from line.taken(number + 1)
                    return
                if _size(path) < file.tell():
                    file.seek(0)
                    number, line = 0, _Line()


def _size(path: str) -> float:
    """Bytes of a file; one that was deleted meanwhile does not get shorter."""
    try:
        return os.path.getsize(path)
    except OSError:
        return float("inf")
