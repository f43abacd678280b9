"""Small questions about how a function is written, answered from its syntax tree."""

from __future__ import annotations

import ast

from rlproof.read.flow import Flow
from rlproof.read.landmarks import called, surrogate_of
from rlproof.read.names import Slot
from rlproof.read.targets import Target


def picker(target: Target) -> str | None:
    """`min` or `max`: how the choice between the two surrogate terms is written."""
    node = surrogate_of(Flow(target.node, labels(target)))
    if not isinstance(node, ast.Call):
        return None
    name = called(node)
    return "min" if "min" in name else "max" if "max" in name else None


def labels(target: Target) -> dict[str, str]:
    """The taint label of every parameter: its slot, or its own name."""
    return {p.name: p.slot or f"?{p.name}" for p in target.parameters}


def divides_by_width(target: Target) -> bool:
    """Whether the function divides by a tensor's own shape, written as such."""
    return any(
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Div)
        and any(_is_width(inner) for inner in ast.walk(node.right))
        for node in ast.walk(target.node)
    )


def _is_width(node: ast.AST) -> bool:
    """`x.shape[1]` or `x.size(-1)`: one axis, not the number of all slots."""
    match node:
        case ast.Subscript(value=ast.Attribute(attr="shape"), slice=index):
            return not _is_zero(index)
        case ast.Call(func=ast.Attribute(attr="size"), args=[index]):
            return not _is_zero(index)
    return False


def _is_zero(index: ast.expr) -> bool:
    return isinstance(index, ast.Constant) and index.value == 0
