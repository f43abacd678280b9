"""Findings that a user accepts: `# rlproof: ignore[kl-reversed]`, `…ignore[KLD002,SUR004]`.

The comment stands behind code: on a line of the finding or of its statement, or on the `def` of
its function. Codes and names are meant, never prefixes: an ignore says exactly what is accepted.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from rlproof.faults.registry import find
from rlproof.read.comments import MARK, comments, stands_alone
from rlproof.read.source import Source

_FORM = re.compile(r"#\s*rlproof:\s*ignore\b\s*(?:\[([^\]]*)\])?")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Ignore:
    """One code or name of a comment, and the lines whose findings it accepts."""

    word: str
    """As it is written."""
    line: int
    """The line of the comment."""
    code: str | None = None
    """The fault that is meant; None where the word names none."""
    problem: str = ""
    """Why this can't ignore anything."""
    spans: tuple[tuple[int, int], ...] = ()
    """Lines, from and to, of the statement and of the functions that the comment is about."""

    def covers(self, line: int, end_line: int) -> bool:
        """Whether a finding on these lines is meant."""
        inside = any(first <= line and end_line <= last for first, last in self.spans)
        return inside or self.line in (line, end_line)


def ignores(source: Source) -> tuple[Ignore, ...]:
    """Every code of every ignore, in the order of the file."""
    if MARK not in source.text:
        return ()
    spans = list(_spans(source.tree))
    return tuple(
        one
        for token in comments(source.text)
        for found in _FORM.finditer(token.string)
        for one in _of(found[1], token.start[0], stands_alone(token), spans)
    )


def _of(
    inner: str | None, line: int, alone: bool, spans: list[tuple[frozenset[int], int, int]]
) -> Iterator[Ignore]:
    words = [word for part in (inner or "").split(",") if (word := part.strip())]
    if not words:
        yield Ignore("", line, problem="names no fault; write ignore[CODE] or ignore[name]")
    about = tuple((first, last) for heads, first, last in spans if line in heads)
    for word in words:
        try:
            code = find(word).code
        except KeyError as error:
            yield Ignore(word, line, problem=str(error.args[0]))
            continue
        if alone:
            problem = "stands on a line of its own; put it behind the code that it is about"
            yield Ignore(word, line, code, problem)
        else:
            yield Ignore(word, line, code, spans=about)


def _spans(tree: ast.Module) -> Iterator[tuple[frozenset[int], int, int]]:
    """Where a comment may stand, and the lines it is then about: functions and statements."""
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTIONS):
            body = max(node.body[0].lineno, node.lineno + 1)
            yield frozenset(range(node.lineno, body)), node.lineno, node.end_lineno or node.lineno
        elif isinstance(node, ast.stmt) and not hasattr(node, "body"):
            last = node.end_lineno or node.lineno
            yield frozenset((node.lineno, last)), node.lineno, last
