"""Small questions about how a function is written, answered from its syntax tree."""

from __future__ import annotations

import ast

from rlproof.faults.seen import Place
from rlproof.read.flow import Flow
from rlproof.read.landmarks import called, is_width, place, surrogate_of
from rlproof.read.targets import Target

_RANDOM = {
    "bernoulli", "choice", "choices", "dropout", "gauss", "multinomial", "normal", "rand",
    "rand_like", "randint", "randn", "randn_like", "random", "sample", "shuffle", "uniform",
}  # fmt: skip


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
        and any(is_width(inner) for inner in ast.walk(node.right))
        for node in ast.walk(target.node)
    )


def mutation(target: Target, names: set[str]) -> Place | None:
    """The first statement that assigns into one of these parameters."""
    for node in ast.walk(target.node):
        if isinstance(node, ast.Assign | ast.AugAssign):
            spots = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(spot, ast.Subscript) and _root(spot) in names for spot in spots):
                return place(target.name, node)
    return None


def random_draw(target: Target) -> Place | None:
    """The first statement that draws random numbers, by the names of what it calls."""
    for node in ast.walk(target.node):
        if isinstance(node, ast.Call) and called(node) in _RANDOM:
            return place(target.name, node)
    return None


def _root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
