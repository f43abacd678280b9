"""A patch that `git apply` takes, from the bytes of a file before and after."""

from __future__ import annotations

import difflib
import os
from typing import Literal

_CONTEXT = 3
_OpCode = tuple[Literal["replace", "delete", "insert", "equal"], int, int, int, int]


def patch(path: str, before: bytes, after: bytes) -> bytes:
    """A unified diff with names below the current folder, quoted as git quotes them.

    Lines end at a line feed only, as in git; a file without a last newline says so.
    """
    if before == after:
        return b""
    name = _below_here(path)
    old, new = _lines(before), _lines(after)
    out = [b"--- " + _quoted(f"a/{name}") + b"\n", b"+++ " + _quoted(f"b/{name}") + b"\n"]
    for hunk in _Matcher(old, new).get_grouped_opcodes(_CONTEXT):
        first, last = hunk[0], hunk[-1]
        out.append(f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@\n".encode())
        for tag, i1, i2, j1, j2 in hunk:
            if tag == "equal":
                out += [_line(b" ", line) for line in old[i1:i2]]
            else:
                out += [_line(b"-", line) for line in old[i1:i2]]
                out += [_line(b"+", line) for line in new[j1:j2]]
    return b"".join(out)


class _Matcher(difflib.SequenceMatcher[bytes]):
    """What differs, found between the first and the last line that do.

    Thousands of equal lines cost the matcher their square.
    """

    def __init__(self, old: list[bytes], new: list[bytes]) -> None:
        most = min(len(old), len(new))
        head = next((i for i in range(most) if old[i] != new[i]), most)
        tail = next((i for i in range(most - head) if old[-1 - i] != new[-1 - i]), most - head)
        self._head = head
        self._ends = (len(old) - tail, len(old), len(new) - tail, len(new))
        super().__init__(None, old[head : self._ends[0]], new[head : self._ends[2]], autojunk=False)

    def get_opcodes(self) -> list[_OpCode]:
        """Those of whole files."""
        head, (i1, i2, j1, j2) = self._head, self._ends
        inner = super().get_opcodes()
        moved: list[_OpCode] = [(tag, a + head, b + head, c + head, d + head)
                                for tag, a, b, c, d in inner]  # fmt: skip
        before: list[_OpCode] = [("equal", 0, head, 0, head)] if head else []
        after: list[_OpCode] = [("equal", i1, i2, j1, j2)] if i2 > i1 else []
        return [*before, *moved, *after]


def _lines(raw: bytes) -> list[bytes]:
    return [
        *(line + b"\n" for line in raw.split(b"\n")[:-1]),
        *filter(None, [raw.split(b"\n")[-1]]),
    ]


def _line(mark: bytes, line: bytes) -> bytes:
    return (
        mark + line if line.endswith(b"\n") else mark + line + b"\n\\ No newline at end of file\n"
    )


def _range(start: int, stop: int) -> str:
    length = stop - start
    first = start + 1 if length else start
    return f"{first}" if length == 1 else f"{first},{length}"


def _below_here(path: str) -> str:
    """Relative to the current folder where the file is below it, as `git apply` wants it."""
    whole, here = os.path.realpath(path), os.path.join(os.path.realpath(os.getcwd()), "")
    absolute = os.path.abspath(path)
    if absolute.startswith(os.path.join(os.getcwd(), "")):
        return os.path.relpath(absolute)
    return whole[len(here) :] if whole.startswith(here) else absolute.lstrip("/")


def _quoted(name: str) -> bytes:
    """C-quoted where git quotes; a tab ends a name with a space, as in git."""
    raw = os.fsencode(name)
    if all(0x20 <= byte < 0x7F and byte not in b'"\\' for byte in raw):
        return raw + b"\t" if b" " in raw else raw
    special = {
        7: b"a",
        8: b"b",
        9: b"t",
        10: b"n",
        11: b"v",
        12: b"f",
        13: b"r",
        34: b'"',
        92: b"\\",
    }
    parts = [
        b"\\" + special[byte] if byte in special
        else bytes([byte]) if 0x20 <= byte < 0x7F else b"\\%03o" % byte
        for byte in raw
    ]  # fmt: skip
    return b'"' + b"".join(parts) + b'"'
