"""A path to a `Script`: source, targets and declared objective. Never imports the file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from rlproof.read.comments import comments, stands_alone
from rlproof.read.imports import imported
from rlproof.read.methods import extraction_methods
from rlproof.read.outline import outline
from rlproof.read.outline.directives import Directive, directives, slots
from rlproof.read.roles import recognise
from rlproof.read.source import Source, load, of_text
from rlproof.read.targets import Role, Script, Target

_DIRECTIVE = re.compile(r"#\s*rlproof:\s*objective\s*=\s*([\w.+-]+)\s*")


def read(path: str, roles: Mapping[str, str] | None = None, text: str | None = None) -> Script:
    """Read one script.

    Args:
        path: the file.
        roles: names with their role, as `[tool.rlproof.roles]` gives them.
        text: what is taken for the file's text, such as an editor's; None reads the file.

    Raises:
        SourceError, NothingToCheckError: see `rlproof.read.source.load`.
        ConfigError: a role or a name in a directive is unknown.
    """
    source = load(path) if text is None else of_text(path, text.removeprefix("\ufeff"))
    return script_of(source, roles)


def script_of(
    source: Source,
    roles: Mapping[str, str] | None = None,
    comments: tuple[Directive, ...] = (),
) -> Script:
    """The targets of a source and the objective that its comments declare.

    Args:
        source: the script.
        roles: names with their role, as `[tool.rlproof.roles]` gives them.
        comments: what a caller says of lines of code, as comments there would say it.

    Raises:
        ConfigError: a role or a name in a directive is unknown.
    """
    known = imported(source)
    parts = tuple(one.target for one in known)
    homes = tuple(sorted({one.path for one in known}))
    functions = recognise(source.tree, parts)
    said = directives(source, slots(roles or {}, "[tool.rlproof.roles]"))
    said = replace(said, comments=(*comments, *said.comments))
    outlined, doubts = outline(source.tree, (*parts, *functions), said)
    targets = _together(functions, [*outlined, *extraction_methods(source.tree)])
    notes = tuple((doubt.name, doubt.reason) for doubt in doubts)
    declared = next(_declared(source.text), None)
    return Script(source, targets, declared, parts, homes, notes, roles or {})


def _together(known: tuple[Target, ...], outlined: list[Target]) -> tuple[Target, ...]:
    """All targets in source order; an outlined function replaces the one that it comes from."""
    homes = {(t.role, t.node.name, t.node.lineno) for t in outlined}
    rest = [
        t
        for t in known
        if t.role not in (Role.LOSS, Role.ADVANTAGES)
        or (t.role, t.node.name, t.node.lineno) not in homes
    ]
    return tuple(sorted([*rest, *outlined], key=lambda t: t.node.lineno))


def _declared(text: str) -> Iterator[str]:
    """The recipes that comments on lines of their own declare."""
    for token in comments(text):
        if stands_alone(token) and (found := _DIRECTIVE.fullmatch(token.string)):
            yield found[1]
