"""What the variables of a loop walk over, through `zip` and `enumerate`."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def bindings(loop: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each variable of a loop or comprehension with the expression whose entries it takes."""
    if isinstance(loop, ast.For | ast.comprehension):
        yield from _pairs(loop.target, loop.iter)


def _pairs(target: ast.expr, source: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    match target, source:
        case ast.Tuple(elts=[_, inner]), ast.Call(func=ast.Name(id="enumerate"), args=[walked, *_]):
            yield from _pairs(inner, walked)
        case ast.Tuple(elts=parts), ast.Call(func=ast.Name(id="zip"), args=args):
            if len(parts) == len(args):
                for part, argument in zip(parts, args, strict=True):
                    yield from _pairs(part, argument)
        case _:
            yield target, source
