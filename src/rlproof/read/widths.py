"""Whether a loss divides by the width of its batch on purpose, itself or in a helper."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.faults.seen import Place
from rlproof.read.landmarks import is_width, place
from rlproof.read.outline.syntax import path_of
from rlproof.read.targets import FunctionNode, Script, Target, module_functions


def divides_by_width(node: ast.AST) -> bool:
    """Whether a function divides by a tensor's own shape, written as such."""
    return any(
        isinstance(inner, ast.BinOp)
        and isinstance(inner.op, ast.Div)
        and any(is_width(part) for part in ast.walk(inner.right))
        for inner in ast.walk(node)
    )


def says_width(script: Script, target: Target) -> bool:
    """Whether the width is the divisor on purpose; outlined code may name it first."""
    named = target.origin is not None and any(
        isinstance(node, ast.Assign) and is_width(node.value) for node in ast.walk(target.node)
    )
    return named or any(divides_by_width(node) for node in _reached(script, target))


def width_place(script: Script, target: Target) -> Place | None:
    """Where a helper of the function divides by the width; None if it does so itself, or not."""
    if divides_by_width(target.node):
        return None
    for function in _reached(script, target):
        for statement in ast.walk(function):
            simple = isinstance(statement, ast.Assign | ast.AugAssign | ast.Return)
            if simple and divides_by_width(statement):
                return place(function.name, statement)
    return None


def width_instead_of(script: Script, target: Target) -> str | None:
    """The setting whose absence alone makes the width the divisor: `if scale is None: …`.

    Who uses the setting gets a constant; who leaves it out relies on rows of one fixed width.
    """
    for function in _reached(script, target):
        for node in ast.walk(function):
            match node:
                case ast.If(test=test, body=body) if setting := _absent(test):
                    if any(isinstance(s, ast.Assign) and is_width(s.value) for s in body):
                        return setting
                case ast.IfExp(test=test, body=body) if is_width(body) and _absent(test):
                    return _absent(test)
                case ast.BoolOp(op=ast.Or(), values=[first, *_, last]) if is_width(last):
                    return path_of(first)
    return None


def _absent(test: ast.expr) -> str | None:
    """What a test asks the absence of: `x is None` or `not x`."""
    match test:
        case ast.Compare(left=left, ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
            return path_of(left)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return path_of(operand)
    return None


def _reached(script: Script, target: Target) -> Iterator[FunctionNode]:
    """The function and those of the module that it calls by name, however far down."""
    known = {node.name: node for node in module_functions(script.source.tree)}
    waiting: list[FunctionNode] = [target.node]
    seen: set[str] = {target.node.name}
    while waiting:
        node = waiting.pop()
        yield node
        for inner in ast.walk(node):
            if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name):
                name = inner.func.id
                if name in known and name not in seen:
                    seen.add(name)
                    waiting.append(known[name])
