"""Whole lines of a file, once or for as long as it grows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

Wait = Callable[[], bool]
"""Called at the end of a file that is followed: sleeps, and says whether to go on."""
LONGEST = 1 << 28
"""Bytes of one line beyond which a file is not read further."""


def lines(path: str, wait: Wait | None = None) -> Iterator[tuple[int, bytes]]:
    """Number from 1 and text of every line that is not blank, in the memory of the longest.

    With `wait` the file is followed: a line without its end is left until that comes, and a file
    that became shorter is read from its start again.

    Raises:
        ValueError: a line is longer than `LONGEST`.
    """
    number, held = 0, b""
    with open(path, "rb") as file:
        while True:
            raw = file.readline(LONGEST)
            if len(raw) == LONGEST:
                raise ValueError(f"line {number + 1} is longer than {LONGEST} bytes")
            if not raw and wait is None:
                return
            if not raw or (wait is not None and not raw.endswith(b"\n")):
                held += raw
                if wait is None or not wait():
                    if text := held.strip():
                        yield number + 1, text
                    return
                if os.path.getsize(path) < file.tell():
                    file.seek(0)
                    number, held = 0, b""
                continue
            number += 1
            text, held = (held + raw).strip(), b""
            if text:
                yield number, text
