"""Arrays of which only a part is used: the parameter is that part, so that shapes agree.

`logps * advantages[:, 1:]`, where the log-probs were computed one slot shorter, works on arrays of
two widths; the probes have one. Where every array is cut alike nothing is changed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from rlproof.read.outline.inputs import is_selection
from rlproof.read.outline.syntax import name_at, rebuilt


def picked(body: Sequence[ast.stmt], names: Sequence[str]) -> list[ast.stmt]:
    """The statements with parts of parameters replaced by the parameters, where that is needed."""
    parts = {name: part for name in names if (part := _part(body, name))}
    if not parts or len(parts) == len(names):
        return list(body)
    swaps: dict[ast.AST, ast.expr] = {
        node: name_at(name, node)
        for name, part in parts.items()
        for node in _picks(body, name)
        if ast.dump(node.slice) == part
    }
    return [node for node in (rebuilt(s, swaps) for s in body) if isinstance(node, ast.stmt)]


def _part(body: Sequence[ast.stmt], name: str) -> str | None:
    """The one part of an array that every use of it picks."""
    picks = list(_picks(body, name))
    parts = {ast.dump(node.slice) for node in picks}
    uses = sum(
        isinstance(n, ast.Name) and n.id == name for statement in body for n in ast.walk(statement)
    )
    return parts.pop() if len(parts) == 1 and len(picks) == uses else None


def _picks(body: Sequence[ast.stmt], name: str) -> Iterator[ast.Subscript]:
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
                is_whole = isinstance(node.value, ast.Name) and node.value.id == name
                slices = any(isinstance(n, ast.Slice) for n in ast.walk(node.slice))
                if is_whole and slices and is_selection(node):
                    yield node
