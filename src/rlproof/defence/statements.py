"""The statements of a module's functions, as text that no reformatting changes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a function: of a compound one, its first line."""

    function: str
    code: str
    """`ast.unparse` of it."""
    line: int
    end_line: int
    trivial: bool
    """Whether there is no mathematics in it: a check, an empty container, a name returned."""


def statements(source: str) -> list[Statement]:
    """Every statement of every top-level function, in source order, docstrings left out."""
    tree = ast.parse(source)
    return [
        Statement(node.name, header(s), s.lineno, _end(s), is_trivial(s))
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        for s in _within(node)
    ]


def _within(node: ast.stmt) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt) and not _is_docstring(child):
            yield child
            yield from _within(child)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def header(node: ast.stmt) -> str:
    """The text of a statement; of a loop, a condition or a definition what stands before it."""
    match node:
        case ast.For():
            return f"for {_bare(node.target)} in {ast.unparse(node.iter)}:"
        case ast.If():
            return f"if {ast.unparse(node.test)}:"
        case ast.Try():
            return "try:"
        case ast.FunctionDef():
            return f"def {node.name}({ast.unparse(node.args)}):"
    return ast.unparse(node)


def _bare(target: ast.expr) -> str:
    if isinstance(target, ast.Tuple):
        return ", ".join(map(ast.unparse, target.elts))
    return ast.unparse(target)


def canonical(code: str) -> str:
    """The text that this version of Python gives a statement, or the first line of a loop."""
    return header(ast.parse(code + " pass" * code.endswith(":")).body[0])


def _end(node: ast.stmt) -> int:
    """The last line of what `header` gives."""
    inner: list[ast.stmt] = getattr(node, "body", [])
    if inner:
        return max(node.lineno, inner[0].lineno - 1)
    return node.end_lineno or node.lineno


def is_trivial(node: ast.stmt) -> bool:
    """Whether a statement computes nothing that a claim could be about."""
    match node:
        case ast.Try() | ast.FunctionDef():
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id=name))):
            return name.startswith(("_check", "_require"))
        case ast.Return(value=value):
            return value is None or _is_named(value)
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            return _is_empty(value)
    return False


def _is_named(value: ast.expr) -> bool:
    """A name, or several."""
    if isinstance(value, ast.Tuple):
        return all(map(_is_named, value.elts))
    return isinstance(value, ast.Name)


def _is_empty(value: ast.expr) -> bool:
    """A number, an empty container, or a table of zeros to be filled."""
    match value:
        case ast.Constant():
            return True
        case ast.List(elts=[]) | ast.Dict(keys=[]) | ast.Call(func=ast.Subscript(), args=[]):
            return True
        case ast.ListComp(elt=ast.BinOp(left=ast.List(elts=[ast.Constant(value=0.0)]))):
            return True
        case ast.Tuple(elts=parts):
            return all(map(_is_empty, parts))
    return False
