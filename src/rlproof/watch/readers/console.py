"""What trainers print: verl's `step:1 - key:value`, OpenRLHF's and TRL's dictionaries.

Lines that are none of these are other output of the run and are passed over.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

from rlproof.watch.readers.items import Item, MetricsRow, Unread
from rlproof.watch.readers.tail import LENGTHY, TOO_LONG, Wait, lines
from rlproof.watch.readers.values import number, numbers, step_of

_LONGEST = 1 << 18
"""Characters of a line of metrics; the syntax tree of one takes a hundred times as much."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_VERL = re.compile(r"(?:^|\s)step:(\d+) - (\S+:.*)$")
_OPENRLHF = re.compile(r"Global step (\d+): (?=\{)")
_DICT = re.compile(r"^\s*(\{'.*\})\s*$")
_NUMPY = re.compile(r"(?:np|numpy)\.\w+\(([^()]*)\)")


def read(path: str, wait: Wait | None = None) -> Iterator[Item]:
    """Every line with metrics in it."""
    for where, raw in lines(path, wait):
        if raw == TOO_LONG:
            yield Unread(where, LENGTHY)
            continue
        row = parse(raw.decode("utf-8", "replace"), where)
        if row is not None:
            yield row


def parse(line: str, where: int) -> MetricsRow | None:
    """The metrics of one printed line, or None."""
    if len(line) > _LONGEST:
        return None
    text = _COLOUR.sub("", line)
    if match := _VERL.search(text):
        return MetricsRow(float(match[1]), _pairs(match[2]), where)
    if match := _OPENRLHF.search(text):
        values = _literal(text[match.end() : text.rfind("}") + 1])
        return MetricsRow(float(match[1]), values, where) if values else None
    if match := _DICT.match(text):
        values = _literal(match[1])
        return MetricsRow(step_of(values), values, where) if values else None
    return None


def _pairs(text: str) -> dict[str, float]:
    """`key:value` between dashes."""
    found: dict[str, float] = {}
    for part in _NUMPY.sub(r"\1", text).split(" - "):
        key, _, value = part.strip().rpartition(":")
        try:
            found[key] = float(value)
        except ValueError:
            continue
    return found


def _literal(text: str) -> dict[str, float]:
    """A printed dictionary. Numbers in quotes, as newer transformers print them, count too."""
    bare = re.sub(r"(?<=: )(nan|-?inf)(?=[,}])", r"'\1'", _NUMPY.sub(r"\1", text))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd escapes in what was printed
            entry = ast.literal_eval(bare)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return {}
    if not isinstance(entry, dict):
        return {}
    named = {key: value for key, value in entry.items() if isinstance(key, str)}
    found = numbers(named)
    for key, value in named.items():
        if isinstance(value, str) and number(value) is None:
            try:
                found[key] = float(value)
            except ValueError:
                continue
    return found
