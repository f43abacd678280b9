"""A comment `# rlproof: ignore[CODE]` put where it accepts one finding, and checked to do so."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rlproof.errors import RlproofError
from rlproof.judge.findings import Finding, Replacement
from rlproof.read.ignores import ignores
from rlproof.read.source import Source, of_text

_LIST = re.compile(r"#\s*rlproof:\s*ignore\s*\[[^\]]*(?=\])")


def accepting(source: Source, finding: Finding) -> Replacement | None:
    """The insertion that accepts a finding; None where no comment can stand.

    The result is read: what is added is a comment that covers the finding, no part of a string.
    """
    place = finding.place
    for number in dict.fromkeys((place.line, place.end_line)):
        for column, added in _insertions(source.lines[number - 1], finding.code):
            lines = list(source.lines)
            line = lines[number - 1]
            lines[number - 1] = line[:column] + added + line[column:]
            if _accepts(source, "\n".join(lines), finding):
                return Replacement(number, column + 1, number, column + 1, added)
    return None


def _insertions(line: str, code: str) -> Iterator[tuple[int, str]]:
    """Into a list that is there, or behind the line."""
    for found in _LIST.finditer(line):
        separator = "" if found[0].rstrip().endswith(("[", ",")) else ", "
        yield found.end(), separator + code
    yield len(line.rstrip()), f"  # rlproof: ignore[{code}]"


def _accepts(before: Source, text: str, finding: Finding) -> bool:
    try:
        after = of_text(before.path, text)
    except RlproofError:
        return False
    place = finding.place
    return any(
        one.code == finding.code and not one.problem and one.covers(place.line, place.end_line)
        for one in ignores(after)
    )
