"""Small questions about syntax: access paths, free and stored names, rebuilt nodes."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping
from typing import TypeVar

N = TypeVar("N", bound=ast.AST)
_GETTERS = {"get", "pop"}
Swaps = Mapping[ast.AST, ast.AST]
Functions = ast.FunctionDef | ast.AsyncFunctionDef
_Comprehensions = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


def key_of(node: ast.expr) -> tuple[ast.expr, str, ast.expr | None] | None:
    """`x.k`, `x["k"]`, `x.get("k", d)` or `getattr(x, "k", d)` as x, k and d."""
    match node:
        case ast.Attribute(value=base, attr=key):
            return base, key, None
        case ast.Subscript(value=base, slice=ast.Constant(value=str(key))):
            return base, key, None
        case ast.Call(
            func=ast.Attribute(value=base, attr=attr), args=[ast.Constant(value=str(key)), *rest]
        ) if attr in _GETTERS and len(rest) < 2 and not node.keywords:
            return base, key, rest[0] if rest else ast.Constant(None)
        case ast.Call(
            func=ast.Name(id="getattr"), args=[base, ast.Constant(value=str(key)), *rest]
        ):
            return base, key, rest[0] if rest else None
    return None


def path_of(node: ast.expr) -> str | None:
    """The access path of an expression, such as `self.args.beta`; None if it is no path."""
    keys: list[str] = []
    while not isinstance(node, ast.Name):
        found = key_of(node)
        if found is None:
            return None
        node, key, _ = found
        keys.append(key)
    return ".".join([node.id, *reversed(keys)])


def root_of(node: ast.AST) -> str | None:
    """The name that a chain of attributes and subscripts starts with: `x` of `x.a[0]`."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def stored(node: ast.AST) -> Iterator[str]:
    """Names that a statement or a target binds, nested functions left out."""
    if isinstance(node, Functions | ast.ClassDef):
        yield node.name
        return
    if isinstance(node, ast.Lambda):
        return
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    if isinstance(node, ast.alias):
        yield (node.asname or node.name).split(".")[0]
    if isinstance(node, ast.ExceptHandler) and node.name:
        yield node.name
    if isinstance(node, _Comprehensions):
        return
    for child in ast.iter_child_nodes(node):
        yield from stored(child)


def free(node: ast.AST) -> set[str]:
    """Names that a node reads from around it."""
    match node:
        case ast.Name(id=name):
            return {name} if isinstance(node.ctx, ast.Load) else set()
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
            outside = set[str]().union(*map(free, defaults))
            own = arguments(node.args) | {n for s in node.body for n in stored(s)}
            return outside | set[str]().union(*map(free, node.body)) - own
        case ast.Lambda(args=args, body=body):
            outside = set[str]().union(*map(free, args.defaults))
            return outside | free(body) - arguments(args)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            inside = set[str]().union(*map(free, ast.iter_child_nodes(node)))
            return inside - targets_of(node)
    return set[str]().union(*map(free, ast.iter_child_nodes(node)))


def targets_of(node: _Comprehensions) -> set[str]:
    """The variables of a comprehension."""
    return {
        name.id
        for generator in node.generators
        for name in ast.walk(generator.target)
        if isinstance(name, ast.Name)
    }


def arguments(args: ast.arguments) -> set[str]:
    """All parameter names of a signature."""
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    return {arg.arg for arg in every if arg is not None}


def rebuilt(node: ast.AST, swaps: Swaps) -> ast.AST:
    """The node with the swapped parts put in; itself where nothing in it is swapped."""
    if node in swaps:
        return swaps[node]
    changed: dict[str, object] = {}
    for name, old in ast.iter_fields(node):
        if isinstance(old, ast.AST):
            new = rebuilt(old, swaps)
            if new is not old:
                changed[name] = new
        elif isinstance(old, list):
            items = [rebuilt(i, swaps) if isinstance(i, ast.AST) else i for i in old]
            if any(a is not b for a, b in zip(items, old, strict=True)):
                changed[name] = items
    return replaced(node, **changed) if changed else node


def replaced(node: N, **fields: object) -> N:
    """A copy of a node, at the same place, with some fields changed."""
    made = copy.copy(node)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def at(node: N, place: ast.AST) -> N:
    """The node and all in it, given the place of another one."""
    for inner in ast.walk(node):
        if "lineno" in inner._attributes:
            for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"):
                setattr(inner, name, getattr(place, name))
    return node


def name_at(name: str, place: ast.AST) -> ast.Name:
    """A name that is read, at the place of another node."""
    return at(ast.Name(name, ast.Load()), place)


def constant_at(value: object, place: ast.AST) -> ast.expr:
    """A constant, a list or a dictionary of constants, at the place of another node."""
    return at(ast.parse(repr(value), mode="eval").body, place)
