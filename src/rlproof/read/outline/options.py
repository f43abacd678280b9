"""Which strings a parameter may be: from its annotation, or from what the function compares."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.read.outline.scope import Scope
from rlproof.read.outline.syntax import Functions

_DEPTH = 3


def strings_of(node: ast.expr) -> list[str]:
    """The strings of a literal list, tuple or set, or the one string."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            texts = [i.value for i in items if isinstance(i, ast.Constant)]
            return [t for t in texts if isinstance(t, str)] if len(texts) == len(items) else []
    return []


def listed(arg: ast.arg | None) -> list[str]:
    """The strings of an annotation `Literal["a", "b"]`."""
    match arg.annotation if arg is not None else None:
        case ast.Subscript(
            value=ast.Name(id="Literal") | ast.Attribute(attr="Literal"), slice=inner
        ):
            items = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            found = [i.value for i in items if isinstance(i, ast.Constant)]
            return [text for text in found if isinstance(text, str)]
    return []


def options_of(scope: Scope, name: str, parameter: str, depth: int = _DEPTH) -> list[str]:
    """The strings that a module's function, or those it calls, compares a parameter with."""
    node = scope.functions.get(name)
    if node is None or not depth:
        return []
    arg = next((a for a in _arguments(node) if a.arg == parameter), None)
    found = listed(arg)
    if found or arg is None:
        return found
    for inner in ast.walk(node):
        if isinstance(inner, ast.Compare) and _is(inner.left, parameter):
            found += [t for side in inner.comparators for t in strings_of(side)]
        elif isinstance(inner, ast.Match) and _is(inner.subject, parameter):
            found += [t for case in inner.cases for t in _patterns(case.pattern)]
    if not found:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name):
                for other, value in given(scope, inner):
                    if _is(value, parameter):
                        found += options_of(scope, inner.func.id, other, depth - 1)
    return list(dict.fromkeys(found))


def given(scope: Scope, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """The parameters of a module's function that a call gives, with what they get."""
    node = scope.functions.get(call.func.id) if isinstance(call.func, ast.Name) else None
    if node is None:
        return
    for arg, value in zip([*node.args.posonlyargs, *node.args.args], call.args, strict=False):
        yield arg.arg, value
    for keyword in call.keywords:
        if keyword.arg is not None:
            yield keyword.arg, keyword.value


def _patterns(pattern: ast.pattern) -> list[str]:
    values = [n.value for n in ast.walk(pattern) if isinstance(n, ast.MatchValue)]
    return [text for value in values for text in strings_of(value)]


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


__all__ = ["Functions", "given", "listed", "options_of", "strings_of"]
