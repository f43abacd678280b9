"""What a module offers to the code in it: functions, classes, imports, constants, settings."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass, field

from rlproof.read.outline.syntax import Functions
from rlproof.read.parameters import number

_BUILTINS = frozenset(dir(builtins))


@dataclass(slots=True)
class ClassInfo:
    """One class of the module: its methods, and what its body assigns."""

    node: ast.ClassDef
    methods: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = field(default_factory=dict)
    constants: dict[str, ast.expr] = field(default_factory=dict)
    bases: tuple[str, ...] = ()


class Scope:
    """The names of a module, by what they stand for."""

    def __init__(self, tree: ast.Module) -> None:
        self.functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
        self.classes: dict[str, ClassInfo] = {}
        self.imported: dict[str, str] = {}
        self.constants: dict[str, ast.expr] = {}
        self.computed: dict[str, int] = {}
        for node in tree.body:
            self._add(node)
        for inner in ast.walk(tree):
            if isinstance(inner, ast.Import | ast.ImportFrom):
                self._import(inner)
            elif isinstance(inner, ast.ClassDef) and inner.name not in self.classes:
                self.classes[inner.name] = _class(inner)
        self.settings = _settings(tree, self.classes)

    def _add(self, node: ast.stmt) -> None:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                self.functions[name] = node
            case ast.ClassDef(name=name):
                self.classes[name] = _class(node)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._assign(name, value, node)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self._assign(name, value, node)
            case ast.Import() | ast.ImportFrom() | ast.Expr() | ast.AnnAssign():
                pass
            case _:
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                        self.computed[inner.id] = inner.lineno

    def _assign(self, name: str, value: ast.expr, node: ast.stmt) -> None:
        if is_literal(value) and name not in self.constants:
            self.constants[name] = value
        else:
            self.computed[name] = node.lineno

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        module = getattr(node, "module", None)
        for alias in node.names:
            root = (module or alias.name).split(".")[0]
            self.imported[(alias.asname or alias.name).split(".")[0]] = root

    def has(self, name: str) -> bool:
        """Whether the name is had by executing definitions, imports and constants only."""
        return name not in self.computed and (
            name in self.functions
            or name in self.classes
            or name in self.imported
            or name in self.constants
            or name in _BUILTINS
        )

    def member(self, node: ast.expr) -> str | None:
        """The string of a member of an enumeration, `Kind.TOKEN` or its `.value`.

        Of another file's enumeration it is not known: the path stands for it.
        """
        if (own := _member(node, self.classes)) is not None:
            return own
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=key) if name in self.imported:
                camel = name[:1].isupper() and not name.isupper()
                return f"{name}.{key}" if camel and key.isupper() else None
        return None

    def ancestors(self, name: str) -> Iterator[ClassInfo]:
        """A class and its bases as far as they are of this file, each once."""
        left, seen = [name], set[str]()
        while left:
            current = left.pop(0)
            info = self.classes.get(current)
            if info is not None and current not in seen:
                seen.add(current)
                yield info
                left += info.bases

    def foreign_base(self, name: str) -> str | None:
        """A base of a class that is of another file."""
        for info in self.ancestors(name):
            for base in info.bases:
                if base not in self.classes and base != "object":
                    return base
        return None


def _member(node: ast.expr, classes: dict[str, ClassInfo]) -> str | None:
    if isinstance(node, ast.Attribute) and node.attr in ("value", "name"):
        node = node.value
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr=key) if name in classes:
            info = classes[name]
            value = info.constants.get(key)
            if {"Enum", "StrEnum"} & set(info.bases):
                return _string(value, key)
    return None


def _string(value: ast.expr | None, key: str) -> str | None:
    """What a member is assigned: a string, or `auto()`, which is its name in lower case."""
    if isinstance(value, ast.Constant):
        return value.value if isinstance(value.value, str) else None
    auto = isinstance(value, ast.Call) and _last(value.func) == "auto"
    return key.lower() if auto else None


def is_literal(node: ast.expr) -> bool:
    """Constants, and lists, dictionaries and arithmetic of constants."""
    allowed = (
        ast.Constant, ast.UnaryOp, ast.unaryop, ast.BinOp, ast.operator, ast.List, ast.Tuple,
        ast.Dict, ast.Set, ast.expr_context,
    )  # fmt: skip
    return all(isinstance(inner, allowed) for inner in ast.walk(node))


def _class(node: ast.ClassDef) -> ClassInfo:
    info = ClassInfo(node, bases=tuple(filter(None, map(_last, node.bases))))
    for inner in node.body:
        match inner:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                info.methods[name] = inner
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                info.constants[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                info.constants[name] = _field(value)
    return info


def _field(value: ast.expr) -> ast.expr:
    """The default inside `field(default=…)`."""
    if isinstance(value, ast.Call) and _last(value.func) in {"field", "Field"}:
        named = [k.value for k in value.keywords if k.arg == "default"]
        return named[0] if named else value.args[0] if value.args else value
    return value


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


def _settings(tree: ast.Module, classes: dict[str, ClassInfo]) -> dict[str, ast.expr]:
    """Settings that the file gives one value: fields, `add_argument`, dictionaries, defaults."""
    found: dict[str, dict[str, ast.expr]] = {}

    def note(name: str, value: ast.expr) -> None:
        member = _member(value, classes)
        value = value if member is None else ast.copy_location(ast.Constant(member), value)
        if is_literal(value):
            found.setdefault(name, {})[ast.dump(value)] = value

    for info in classes.values():
        for name, value in info.constants.items():
            note(name, value)
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="add_argument"), args=[ast.Constant(value=str(option)), *_]
            ):
                _argument(node, option, note)
            case ast.Dict(keys=keys, values=values):
                for key, value in zip(keys, values, strict=True):
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        note(key.value, value)
    return {name: next(iter(values.values())) for name, values in found.items() if len(values) == 1}


def _argument(node: ast.Call, option: str, note: object) -> None:
    assert callable(note)
    for keyword in node.keywords:
        if keyword.arg == "default":
            note(option.lstrip("-").replace("-", "_"), keyword.value)
        if keyword.arg == "action" and isinstance(keyword.value, ast.Constant):
            if keyword.value.value == "store_true":
                note(option.lstrip("-").replace("-", "_"), ast.Constant(False))


def init_defaults(info: ClassInfo) -> dict[str, ast.expr | None]:
    """Parameters of `__init__` without `self`, each with its default."""
    init = info.methods.get("__init__")
    if init is None:
        return {}
    args = init.args
    positional = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(positional) - len(args.defaults)) + list(args.defaults)
    pairs = list(zip(positional, defaults, strict=True))[1:]
    pairs += list(zip(args.kwonlyargs, args.kw_defaults, strict=True))
    return {arg.arg: default for arg, default in pairs}


def constant_of(node: ast.expr | None) -> object:
    """The value of a literal; raises ValueError for anything else."""
    if node is None:
        raise ValueError("no value")
    value = number(node)
    return value if value is not None else ast.literal_eval(node)


__all__ = ["ClassInfo", "Functions", "Scope", "constant_of", "init_defaults", "is_literal"]
