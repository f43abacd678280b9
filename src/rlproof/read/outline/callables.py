"""Attributes of `self` that hold functions: `self.reduce = partial(masked_sum, dim=1)`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache

from rlproof.read.outline.scope import Scope
from rlproof.read.outline.syntax import at, path_of, replaced


def held(scope: Scope, owner: str, name: str) -> ast.expr | None:
    """The one value that the methods of a class and its bases give an attribute."""
    found: dict[str, ast.expr] = {}
    for info in scope.ancestors(owner):
        found |= {ast.dump(value): value for value in _assigned(info.node).get(name, ())}
    return next(iter(found.values())) if len(found) == 1 else None


@lru_cache(maxsize=64)
def _assigned(node: ast.ClassDef) -> dict[str, list[ast.expr]]:
    """What a class assigns to each attribute of `self`; one walk for all of them."""
    found: dict[str, list[ast.expr]] = {}
    for inner in ast.walk(node):
        match inner:
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id="self"), attr=attr)], value=value
            ):
                found.setdefault(attr, []).append(value)
    return found


def called(
    value: ast.expr, call: ast.Call, scope: Scope, decide: Callable[[ast.expr], object]
) -> ast.Call | None:
    """The call of what an attribute holds, if that is a function of this file or an import.

    Args:
        value: what the attribute was given.
        call: the call of the attribute.
        scope: what the module offers.
        decide: the value of a condition that settings decide; None if it is unknown.
    """
    match value:
        case ast.IfExp(test=test, body=body, orelse=orelse):
            known = decide(test)
            if known is None:
                return None
            return called(body if known else orelse, call, scope, decide)
        case ast.Call(
            func=ast.Name(id="partial") | ast.Attribute(attr="partial"), args=[inner, *args]
        ):
            whole = replaced(
                call, args=[*args, *call.args], keywords=[*value.keywords, *call.keywords]
            )
            return called(inner, whole, scope, decide)
        case ast.Name() | ast.Attribute():
            root = (path_of(value) or "").split(".")[0]
            if root in scope.functions or root in scope.imported:
                return replaced(
                    call, func=at(ast.parse(ast.unparse(value), mode="eval").body, call)
                )
    return None
