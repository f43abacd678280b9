"""Clip bounds that are absolute: `clamp(ratio, max=epsilon_high)`, as CISPO is often written.

Such a bound is 1 above what the probes call the clip range, unless a default says otherwise.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from rlproof.read.names import Slot
from rlproof.read.outline.state import Input
from rlproof.read.outline.syntax import at

_CLIPPERS = {"clamp", "clip", "clamp_max", "minimum", "min"}
_UPPER = (Slot.CLIP, Slot.CLIP_HIGH)


def absolute(inputs: Sequence[Input], body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that raise bounds which the code takes as they are by 1."""
    aliases = _aliases(body)
    for found in inputs:
        if found.slot in _UPPER and found.default is None:
            names = {found.name} | {new for new, old in aliases.items() if old == found.name}
            uses = [node for s in body for node in ast.walk(s) if _adds(node, names)]
            bare = [node for s in body for node in ast.walk(s) if _is_bound(node, names)]
            if bare and not uses:
                made = ast.parse(f"{found.name} = 1 + {found.name}").body[0]
                yield at(made, bare[0])


def _aliases(body: Sequence[ast.stmt]) -> dict[str, str]:
    return {
        node.targets[0].id: node.value.id
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Name)
    }


def _adds(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.BinOp) and any(
        isinstance(side, ast.Name) and side.id in names for side in (node.left, node.right)
    )


def _is_bound(node: ast.AST, names: set[str]) -> bool:
    if not isinstance(node, ast.Call):
        return False
    func = node.func
    last = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
    given = [*node.args, *(k.value for k in node.keywords)]
    return last in _CLIPPERS and any(isinstance(a, ast.Name) and a.id in names for a in given)
