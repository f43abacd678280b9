"""Which names hold some rows of something else: `mask = batch["response_mask"][rows]`."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def parts(tree: ast.AST) -> frozenset[tuple[str, str]]:
    """Pairs of a name and of that which it is rows of.

    What is in a batch has two names, its key and `batch_key`, as parameters of outlined functions.

    Only rows: a slice of another axis, as `mask[:, 1:]`, is no part but something shifted.
    """
    return frozenset(
        (target.id, whole)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target, value in _assigned(node)
        if isinstance(target, ast.Name)
        for whole in _rows_of(value)
    )


def _assigned(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts, strict=False)
        else:
            yield target, node.value


def _rows_of(value: ast.expr) -> tuple[str, ...]:
    """The names of what a subscript takes rows of, if it does."""
    if not isinstance(value, ast.Subscript) or isinstance(value.slice, ast.Constant):
        return ()
    first, *others = value.slice.elts if isinstance(value.slice, ast.Tuple) else [value.slice]
    whole = isinstance(first, ast.Slice | ast.Name | ast.Attribute | ast.Call)
    if not whole or not all(map(_is_full, others)):
        return ()
    match value.value:
        case ast.Name(id=name):
            return (name,)
        case (
            ast.Attribute(value=ast.Name(id=batch), attr=name)
            | ast.Subscript(value=ast.Name(id=batch), slice=ast.Constant(value=str(name)))
        ):
            return name, f"{batch}_{name}"
        case ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            return (name,)
    return ()


def _is_full(index: ast.expr) -> bool:
    """Whether an index leaves its axis as it is, or makes a new one."""
    match index:
        case ast.Slice(lower=None, upper=None, step=None) | ast.Constant(value=None):
            return True
    return False
