"""What a user says of roles: comments `# rlproof: loss new=logp old=old_lp adv=A mask=m`.

Such a comment stands on the line of a `def` or of the statement that produces the value, or on
lines of its own above it. Settings of the project (`[tool.rlproof.roles]`) hold everywhere.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from rlproof.errors import ConfigError
from rlproof.read.comments import MARK, comments, stands_alone
from rlproof.read.names import Slot
from rlproof.read.outline.regions import names_in
from rlproof.read.outline.syntax import Functions
from rlproof.read.source import Source, shown

SLOTS: Mapping[str, Slot] = {
    "new": Slot.NEW, "old": Slot.OLD, "ref": Slot.REF, "adv": Slot.ADVANTAGES,
    "mask": Slot.MASK, "lengths": Slot.LENGTHS, "rewards": Slot.REWARDS, "group": Slot.GROUP_SIZE,
    "groups": Slot.GROUP_IDS, "clip": Slot.CLIP, "clip_low": Slot.CLIP_LOW,
    "clip_high": Slot.CLIP_HIGH, "cap": Slot.CAP, "beta": Slot.BETA, "eps": Slot.EPS,
    "width": Slot.WIDTH, "one": Slot.ONE, "temperature": Slot.TEMPERATURE,
}  # fmt: skip
"""The words of directives, and of `[tool.rlproof.roles]`."""

_FORM = re.compile(r"#\s*rlproof:\s*(loss|advantages)\b(.*)")
_PAIR = re.compile(r"(\w+)\s*=\s*([^\s,]+)")


@dataclass(frozen=True, slots=True)
class Directive:
    """One comment: what it is about, the roles of names, and the line of its code."""

    kind: str
    roles: Mapping[str, Slot]
    line: int
    comment: int
    """The line of the comment itself."""


@dataclass(frozen=True, slots=True)
class Directives:
    """All that a file and its project say."""

    project: Mapping[str, Slot] = field(default_factory=dict)
    comments: tuple[Directive, ...] = ()

    def at(self, node: ast.stmt) -> Directive | None:
        """The directive on a statement or a `def`; decorators count as part of it."""
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        head = {node.lineno, first}
        if not hasattr(node, "body"):
            head |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        return next((d for d in self.comments if d.line in head), None)

    def inside(self, body: list[ast.stmt]) -> Mapping[str, Slot]:
        """The roles that hold in a function: the project's, then those of its comments."""
        from rlproof.read.outline.regions import own_statements

        found = dict(self.project)
        for statement in own_statements(body):
            if not isinstance(statement, Functions) and (said := self.at(statement)):
                found |= said.roles
        return found


def slots(table: Mapping[str, str], where: str) -> dict[str, Slot]:
    """Names to slots, from names to the words of directives.

    Raises:
        ConfigError: a word that names no slot.
    """
    return {name: _slot(word, where) for name, word in table.items()}


def _slot(word: str, where: str) -> Slot:
    if word in SLOTS:
        return SLOTS[word]
    near = get_close_matches(word, SLOTS, 1)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(SLOTS)}"
    raise ConfigError(f"{where}: {word!r} is no role; {hint}")


def directives(source: Source, project: Mapping[str, Slot]) -> Directives:
    """The directives of a file.

    Raises:
        ConfigError: an unknown role, a name that the code beside it doesn't have, or no code.
    """
    if MARK not in source.text:
        return Directives(project)
    return Directives(project, tuple(_comments(source)))


def _comments(source: Source) -> Iterator[Directive]:
    statements = [n for n in ast.walk(source.tree) if isinstance(n, ast.stmt)]
    firsts = sorted({
        min([n.lineno, *(d.lineno for d in getattr(n, "decorator_list", []))]) for n in statements
    })  # fmt: skip
    for token in comments(source.text):
        found = _FORM.match(token.string)
        if found is None:
            continue
        line = token.start[0]
        where = f"{shown(source.path)}:{line}"
        if stands_alone(token):
            line = next((first for first in firsts if first > line), 0)
        if not line:
            raise ConfigError(f"{where}: no code follows this comment")
        roles = {name: _slot(word, where) for word, name in _PAIR.findall(found[2])}
        said = Directive(found[1], roles, line, token.start[0])
        _check_names(said, source.tree, where)
        yield said


def _check_names(said: Directive, tree: ast.Module, where: str) -> None:
    """Every name must appear in the function around the code, or in the module."""
    around: ast.AST = tree
    for node in ast.walk(tree):
        if isinstance(node, Functions) and node.lineno <= (node.end_lineno or 0):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first <= said.line <= (node.end_lineno or 0):
                around = node
    known = names_in(around)
    for name in said.roles:
        last = name.rpartition(".")[2]
        if last not in known:
            near = get_close_matches(last, known, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ConfigError(f"{where}: the code has no name {name!r}{hint}")
