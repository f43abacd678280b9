"""What goes wrong with files: bytes flipped, cut off, spliced, saved in another encoding, nested.

`mutated` is a function of its arguments alone.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

TOKENS = (
    b"NaN", b"nan", b"Infinity", b"-inf", b"1e400", b"-0", b"1" * 400, b"9" * 5000,
    b"0x" + b"f" * 5000, b"18446744073709551616", b"1e-400", b"true", b"null", b"{}", b"[]",
    b'""', b"\\ud800", b"\\u0000",
    b"\0", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\r", b"\r\n", b"\x85",
    b'"', b"'", b"{'", b"}", b"\\", b",", b":", b"#", b"(", b")", b"-", b".", b"*", b"lambda: ",
    b"# coding: utf-7\n", b"# rlproof: ", b"step", b"step:1 - ", b"Global step 1: {",
    b"np.float64(",
    "ﬁ".encode(), "变量".encode(), "١".encode(), "²".encode(), "é".encode("latin-1"), b"\x1b[31m",
    b"async ", b"yield ", b"await ", b"*args", b"del ", b"global x\n", b"\tpass\n", b"if x:\n",
)  # fmt: skip
_OPENING = (b"[", b"{", b"(", b'{"a":', b"[[", b"not ", b"-", b"a.", b"f(", b"lambda:", b"1+")
_NUMBER = re.compile(rb"-?\d+\.?\d*")
_WORD = re.compile(rb"[A-Za-z_]{2,}")


def _place(rng: random.Random, raw: bytes) -> int:
    return rng.randrange(len(raw) + 1)


def _flip(rng: random.Random, raw: bytes, _: bytes) -> bytes:
    changed = bytearray(raw)
    for _ in range(rng.randint(1, 4) if raw else 0):
        changed[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(rng: random.Random, raw: bytes, _: bytes) -> bytes:
    return raw[: _place(rng, raw)]


def _remove(rng: random.Random, raw: bytes, _: bytes) -> bytes:
    start, end = sorted((_place(rng, raw), _place(rng, raw)))
    return raw[:start] + raw[end:]


def _repeat(rng: random.Random, raw: bytes, _: bytes) -> bytes:
    start = _place(rng, raw)
    end = min(len(raw), start + rng.randint(1, 40))
    return raw[:end] + raw[start:end] * rng.choice((1, 3, 40)) + raw[end:]


def _splice(rng: random.Random, raw: bytes, other: bytes) -> bytes:
    return raw[: _place(rng, raw)] + other[_place(rng, other) :]


def _insert(rng: random.Random, raw: bytes, _: bytes) -> bytes:
    place = _place(rng, raw)
    return raw[:place] + rng.choice(TOKENS) + raw[place:]


def _number(rng: random.Random, raw: bytes, _: bytes) -> bytes:
    return _instead(rng, raw, _NUMBER, rng.choice(TOKENS))


def _word(rng: random.Random, raw: bytes, other: bytes) -> bytes:
    found = _WORD.findall(other) or [b"x"]
    return _instead(rng, raw, _WORD, rng.choice((rng.choice(found), rng.choice(TOKENS))))


def _instead(rng: random.Random, raw: bytes, what: re.Pattern[bytes], new: bytes) -> bytes:
    found = list(what.finditer(raw))
    if not found:
        return raw + new
    one = rng.choice(found)
    return raw[: one.start()] + new + raw[one.end() :]


def _lines(rng: random.Random, raw: bytes, _: bytes) -> bytes:
    lines = raw.split(b"\n")
    one, two = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[one], lines[two] = lines[two], rng.choice((lines[one], b"    " + lines[one]))
    return b"\n".join(lines)


def _nest(rng: random.Random, raw: bytes, _: bytes) -> bytes:
    place = _place(rng, raw)
    return raw[:place] + rng.choice(_OPENING) * rng.choice((3, 90, 1000)) + raw[place:]


def _saved(rng: random.Random, raw: bytes, _: bytes) -> bytes:
    text = raw.decode("utf-8", "replace")
    how = rng.choice(("utf-16", "utf-32", "utf-8-sig", "latin-1", "utf-7", "cp1252"))
    made = text.encode(how, "replace")
    return rng.choice((made, raw.replace(b"\n", b"\r\n"), raw.replace(b"\n", b"\r"), raw + b"\x1a"))


WAYS: tuple[Callable[[random.Random, bytes, bytes], bytes], ...] = (
    _flip, _cut, _remove, _repeat, _splice, _insert, _number, _word, _lines, _nest, _saved,
)  # fmt: skip


def mutated(seeds: Sequence[bytes], number: int) -> bytes:
    """One of the seeds, changed one to four times."""
    rng = random.Random(number)
    raw = rng.choice(seeds)
    for _ in range(rng.choice((1, 1, 2, 4))):
        raw = rng.choice(WAYS)(rng, raw, rng.choice(seeds))
    return raw
