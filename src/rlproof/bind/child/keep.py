"""Which top-level statements of a script may be executed: imports, definitions, constants.

Everything else (loops, calls, file writes, `if __name__ == "__main__"`) is never run.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

_PURE_BUILTINS = {
    "abs", "bool", "complex", "dict", "float", "frozenset", "int", "len", "list", "max", "min",
    "object", "range", "round", "set", "sorted", "str", "sum", "tuple",
}  # fmt: skip
_PURE_MEMBERS = {
    "NewType", "ParamSpec", "Path", "Random", "TypeVar", "arange", "array", "asarray",
    "default_rng", "device", "exp", "field", "finfo", "float32", "float64", "getLogger", "log",
    "log2", "namedtuple", "ones", "sqrt", "tensor", "zeros",
}  # fmt: skip
_STRIPPED_DECORATORS = {"compile", "script", "jit", "njit", "main", "command", "remote"}


class Scope(NamedTuple):
    """Names that a script imports, and names that it defines itself."""

    imported: set[str]
    defined: set[str]


def kept(tree: ast.Module) -> list[tuple[ast.stmt, bool]]:
    """Every top-level statement, in order, with whether it may be executed."""
    scope = _scope(tree)
    return [(node, _is_kept(node, scope)) for node in tree.body]


def runs_only_imports(node: ast.stmt) -> bool:
    """Whether a kept statement does nothing but import, so that packages may do as they like."""
    if isinstance(node, ast.Try):
        inside = (n for n in ast.walk(node) if n is not node and isinstance(n, ast.stmt))
        return all(isinstance(n, ast.Import | ast.ImportFrom | ast.Pass) or _sets_constant(n)
                   for n in inside)  # fmt: skip
    return isinstance(node, ast.Import | ast.ImportFrom)


def _sets_constant(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)


def _scope(tree: ast.Module) -> Scope:
    imported = {
        (alias.asname or alias.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    definitions = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return Scope(imported, {n.name for n in ast.walk(tree) if isinstance(n, definitions)})


def _is_kept(node: ast.stmt, scope: Scope) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom():
            return True
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            node.decorator_list = [d for d in node.decorator_list if _decorates(d)]
            defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
            return all(is_constant(default, scope) for default in defaults)
        case ast.ClassDef():
            node.decorator_list = [d for d in node.decorator_list if _decorates(d)]
            node.body = [s for s in node.body if _is_kept(s, scope) or _is_doc(s)]
            node.body = node.body or [ast.Pass()]
            given = [*node.bases, *(keyword.value for keyword in node.keywords)]
            return all(is_constant(value, scope) for value in given)
        case ast.Assign(targets=targets, value=value):
            return all(map(_is_plain_target, targets)) and is_constant(value, scope)
        case ast.AnnAssign(target=target, value=value):
            return _is_plain_target(target) and (value is None or is_constant(value, scope))
        case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
            caught = [handler.type for handler in handlers if handler.type]
            inside = [*body, *(s for h in handlers for s in h.body), *orelse, *final]
            kept_inside = all(isinstance(s, ast.Pass) or _is_kept(s, scope) for s in inside)
            return kept_inside and all(is_constant(kind, scope) for kind in caught)
        case ast.Pass():
            return True
    return False


def _is_doc(node: ast.stmt) -> bool:
    return isinstance(node, ast.Pass) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _decorates(node: ast.expr) -> bool:
    """Compilers and command-line wrappers change no mathematics and may start processes."""
    called = node.func if isinstance(node, ast.Call) else node
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name not in _STRIPPED_DECORATORS


def _is_plain_target(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple):
        return all(map(_is_plain_target, node.elts))
    return isinstance(node, ast.Name)


def is_constant(node: ast.expr, scope: Scope) -> bool:
    """Whether evaluating this runs none of the script's own code."""
    match node:
        case ast.Constant() | ast.Name() | ast.Lambda():
            return True
        case ast.Call(func=func, args=args, keywords=keywords):
            values = [*args, *(k.value for k in keywords)]
            return _is_pure(func, scope) and all(is_constant(v, scope) for v in values)
        case (
            ast.BinOp() | ast.UnaryOp() | ast.BoolOp() | ast.Compare() | ast.IfExp()
            | ast.Tuple() | ast.List() | ast.Set() | ast.Dict() | ast.Attribute()
            | ast.Subscript() | ast.Slice() | ast.Starred() | ast.JoinedStr() | ast.FormattedValue()
        ):  # fmt: skip
            children = (c for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr))
            return all(is_constant(child, scope) for child in children)
    return False


def _is_pure(func: ast.expr, scope: Scope) -> bool:
    if isinstance(func, ast.Name):
        pure = func.id in _PURE_BUILTINS or (func.id in _PURE_MEMBERS and func.id in scope.imported)
        return pure and func.id not in scope.defined
    match func:
        case ast.Attribute(value=ast.Name(id="re"), attr="compile"):
            return "re" in scope.imported and "re" not in scope.defined
    root = func
    while isinstance(root, ast.Attribute):
        root = root.value
    is_member = isinstance(func, ast.Attribute) and func.attr in _PURE_MEMBERS
    return is_member and isinstance(root, ast.Name) and root.id in scope.imported
