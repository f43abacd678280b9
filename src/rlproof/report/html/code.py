"""Listings and diffs: lines cut into runs of one look each."""

from __future__ import annotations

import io
import keyword
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rlproof.report.html.blocks import Listing, Mark

_LONGEST = 400
"""Characters of a line that are printed."""
Span = tuple[int, int, str]
_STRINGS = {tokenize.STRING} | {
    getattr(tokenize, name)
    for name in ("FSTRING_START", "FSTRING_MIDDLE", "FSTRING_END")  # from Python 3.12 on
    if hasattr(tokenize, name)
}


@dataclass(frozen=True, slots=True)
class Run:
    """Some characters of a line: the class of their token, and whether they are marked."""

    text: str
    token: str = ""
    marked: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a listing, or a gap of `left_out` lines."""

    number: int
    runs: tuple[Run, ...] = ()
    tone: str = ""
    marks: tuple[Mark, ...] = ()
    left_out: int = 0


def rows(listing: Listing) -> Iterator[Row]:
    """The rows to print, gaps included."""
    looks = _tokens(listing.lines)
    missing = 0
    for index, line in enumerate(listing.lines, 1):
        number = index + listing.first - 1
        if listing.shown is not None and number not in listing.shown:
            missing += 1
            continue
        if missing:
            yield Row(number, left_out=missing)
            missing = 0
        yield _row(number, line, looks[index], listing.marks)
    if missing:
        yield Row(len(listing.lines) + listing.first, left_out=missing)


def _row(number: int, line: str, looks: list[Span], marks: Sequence[Mark]) -> Row:
    here = [mark for mark in marks if mark.line <= number <= mark.end_line]
    spans = [_marked(mark, line) for mark in here]
    tone = str(here[0].tone) if here else ""
    ending = tuple(mark for mark in here if mark.end_line == number)
    return Row(number, tuple(_runs(line, looks, spans)), tone, ending)


def _marked(mark: Mark, line: str) -> Span:
    """The columns of a line that a mark covers: of one line as given, of several all."""
    if mark.line == mark.end_line and mark.end_col > mark.col:
        return mark.col, mark.end_col, str(mark.tone)
    return len(line) - len(line.lstrip()), len(line), str(mark.tone)


def _runs(line: str, looks: list[Span], marks: list[Span]) -> Iterator[Run]:
    end = min(len(line), _LONGEST)
    edges = {0, end} | {min(edge, end) for span in (*looks, *marks) for edge in span[:2]}
    cuts = sorted(edges)
    for start, stop in pairwise(cuts):
        yield Run(line[start:stop], _at(looks, start), _at(marks, start))
    if len(line) > end:
        yield Run(f" … {len(line) - end} more characters")


def _at(spans: list[Span], column: int) -> str:
    return next((name for start, stop, name in spans if start <= column < stop), "")


def _tokens(lines: Sequence[str]) -> defaultdict[int, list[Span]]:
    """Comments, strings and keywords of every line; what the tokenizer rejects stays plain."""
    found: defaultdict[int, list[Span]] = defaultdict(list)
    try:
        for token in tokenize.generate_tokens(io.StringIO("\n".join(lines)).readline):
            if name := _class_of(token):
                (first, start), (last, stop) = token.start, token.end
                for number in range(first, last + 1):
                    begin = start if number == first else 0
                    found[number].append((begin, stop if number == last else 10**9, name))
    except (tokenize.TokenError, SyntaxError):
        pass
    return found


def _class_of(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.COMMENT:
        return "c"
    if token.type in _STRINGS:
        return "s"
    return "k" if token.type == tokenize.NAME and keyword.iskeyword(token.string) else ""


def diff_lines(diff: str) -> Iterator[tuple[str, str]]:
    """Each line of a unified diff with its kind: head, hunk, add, del, or nothing."""
    for line in diff.rstrip("\n").split("\n"):
        if line.startswith(("--- ", "+++ ")):
            kind = "head"
        elif line.startswith("@@"):
            kind = "hunk"
        else:
            kind = {"+": "add", "-": "del"}.get(line[:1], "")
        yield kind, line[:_LONGEST]
