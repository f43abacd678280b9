"""Numbers that the source fixes: constants, and the defaults of settings that nothing overrides."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from rlproof.read.targets import FunctionNode

Number = int | float


@dataclass(frozen=True, slots=True)
class Fixed:
    """A number, and where it is written."""

    value: Number | bool | None
    node: ast.AST


class Values:
    """What names and attributes of one file stand for.

    An attribute such as `config.top_p` is looked up by its last part: among the fields of classes
    (with a default), the parameters of argument parsers, keys of literal dictionaries and keyword
    arguments of constructors. Two different values under one name make it unknown.
    """

    def __init__(self, tree: ast.Module) -> None:
        self._names: dict[str, list[ast.expr | None]] = {}
        self._fields: dict[str, list[ast.expr | None]] = {}
        self._passed: set[str] = set()
        for node in ast.walk(tree):
            self._note(node)

    def number(self, node: ast.expr | None) -> Fixed | None:
        """The number that an expression stands for; None where the source does not fix it."""
        return self._number(node, 0)

    def _number(self, node: ast.expr | None, depth: int) -> Fixed | None:
        if node is None or depth > 4:
            return None
        match node:
            case ast.Constant(value=int() | float() | None as value):
                return Fixed(value, node)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return Fixed(-value, node)
            case ast.Name(id=name):
                return self._agreed(self._names.get(name, []), depth)
            case ast.Attribute(attr=attr):
                written = self._fields.get(attr, [])
                if attr in self._passed:  # self.beta = beta
                    written = [*written, *self._names.get(attr, [])]
                return self._agreed(written, depth)
            case ast.Subscript(slice=ast.Constant(value=str() as name)):
                return self._agreed(self._fields.get(name, []), depth)
        return None

    def _agreed(self, written: list[ast.expr | None], depth: int) -> Fixed | None:
        found = [self._number(node, depth + 1) for node in written]
        if not found or any(one is None for one in found):
            return None
        values = {one.value for one in found if one is not None}
        return found[0] if len(values) == 1 else None

    def _note(self, node: ast.AST) -> None:
        match node:
            case ast.ClassDef():
                for inner in node.body:
                    match inner:
                        case ast.AnnAssign(target=ast.Name(id=name)):
                            self._field(name, _field_default(inner.value))
                        case ast.Assign(targets=[ast.Name(id=name)], value=value):
                            self._field(name, value)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                for name, default in _parameters(node):
                    self._names.setdefault(name, []).append(default)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._store(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._store(target, value)
            case ast.AugAssign(target=target):
                self._store(target, None)
            case ast.For(target=target) | ast.comprehension(target=target):
                self._store(target, None)
            case ast.NamedExpr(target=target):
                self._store(target, None)
            case ast.Dict(keys=keys, values=values):
                for key, value in zip(keys, values, strict=True):
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        self._field(key.value, value)
            case ast.Call(func=func, keywords=keywords, args=args):
                name = getattr(func, "attr", getattr(func, "id", ""))
                if name == "add_argument":
                    self._argument(args, keywords)
                elif name[:1].isupper():
                    for keyword in keywords:
                        if keyword.arg:
                            self._given(keyword.arg, keyword.value)

    def _argument(self, args: list[ast.expr], keywords: list[ast.keyword]) -> None:
        default = next((k.value for k in keywords if k.arg == "default"), None)
        for argument in args:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                name = argument.value.lstrip("-").replace("-", "_")
                self._field(name, default)

    def _given(self, name: str, value: ast.expr) -> None:
        """A keyword of a constructor: `temperature=args.temperature` only passes a value on."""
        if isinstance(value, ast.Constant | ast.UnaryOp):
            self._field(name, value)

    def _field(self, name: str, value: ast.expr | None) -> None:
        self._fields.setdefault(name, []).append(value)

    def _store(self, target: ast.expr, value: ast.expr | None) -> None:
        match target:
            case ast.Name(id=name):
                self._names.setdefault(name, []).append(value)
            case ast.Attribute(attr=attr):
                if isinstance(value, ast.Name | ast.Attribute) and _says(value) == attr:
                    self._passed.add(attr)
                    return
                self._field(attr, value)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part in parts:
                    self._store(part, None)


def _says(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


def _field_default(value: ast.expr | None) -> ast.expr | None:
    """`field(default=1)` is the constant 1."""
    match value:
        case ast.Call(func=ast.Name(id="field" | "Field"), keywords=keywords):
            return next((k.value for k in keywords if k.arg == "default"), None)
    return value


def _parameters(node: FunctionNode) -> Iterator[tuple[str, ast.expr | None]]:
    args = node.args
    positional = [*args.posonlyargs, *args.args]
    missing = [None] * (len(positional) - len(args.defaults))
    for argument, default in zip(positional, [*missing, *args.defaults], strict=True):
        yield argument.arg, default
    for argument, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        yield argument.arg, default
