"""Which top-level statements of a script may be executed: imports, definitions, constants.

Everything else (loops, calls, file writes, `if __name__ == "__main__"`) is never run.
"""

from __future__ import annotations

import ast

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


def kept(tree: ast.Module) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """The statements to execute, and those that are left out."""
    imported = _imported(tree)
    keep: list[ast.stmt] = []
    dropped: list[ast.stmt] = []
    for node in tree.body:
        (keep if _is_kept(node, imported) else dropped).append(node)
    return keep, dropped


def _imported(tree: ast.Module) -> set[str]:
    return {
        (alias.asname or alias.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }


def _is_kept(node: ast.stmt, imported: set[str]) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom():
            return True
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            node.decorator_list = [d for d in node.decorator_list if _decorates(d)]
            defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
            return all(is_constant(default, imported) for default in defaults)
        case ast.ClassDef():
            node.decorator_list = [d for d in node.decorator_list if _decorates(d)]
            node.body = [s for s in node.body if _is_kept(s, imported) or _is_doc(s)]
            node.body = node.body or [ast.Pass()]
            return True
        case ast.Assign(targets=targets, value=value):
            return all(map(_is_plain_target, targets)) and is_constant(value, imported)
        case ast.AnnAssign(target=target, value=value):
            return _is_plain_target(target) and (value is None or is_constant(value, imported))
        case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
            inside = [*body, *(s for h in handlers for s in h.body), *orelse, *final]
            return all(isinstance(s, ast.Pass) or _is_kept(s, imported) for s in inside)
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


def is_constant(node: ast.expr, imported: set[str]) -> bool:
    """Whether evaluating this runs none of the script's own code."""
    match node:
        case ast.Constant() | ast.Name() | ast.Lambda():
            return True
        case ast.Call(func=func, args=args, keywords=keywords):
            values = [*args, *(k.value for k in keywords)]
            return _is_pure(func, imported) and all(is_constant(v, imported) for v in values)
        case (
            ast.BinOp() | ast.UnaryOp() | ast.BoolOp() | ast.Compare() | ast.IfExp()
            | ast.Tuple() | ast.List() | ast.Set() | ast.Dict() | ast.Attribute()
            | ast.Subscript() | ast.Slice() | ast.Starred() | ast.JoinedStr() | ast.FormattedValue()
        ):  # fmt: skip
            children = (c for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr))
            return all(is_constant(child, imported) for child in children)
    return False


def _is_pure(func: ast.expr, imported: set[str]) -> bool:
    if isinstance(func, ast.Name):
        return func.id in _PURE_BUILTINS or (func.id in _PURE_MEMBERS and func.id in imported)
    root = func
    while isinstance(root, ast.Attribute):
        root = root.value
    is_member = isinstance(func, ast.Attribute) and func.attr in _PURE_MEMBERS
    return is_member and isinstance(root, ast.Name) and root.id in imported
