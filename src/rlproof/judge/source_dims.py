"""Reductions over the dimensions of another tensor, which has none to reduce."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from rlproof.judge.source_said import Said, tell_at
from rlproof.read.landmarks import called, place
from rlproof.read.loop.reading import FileRead
from rlproof.read.loop.trace import Definitions
from rlproof.read.targets import FunctionNode, Script

_REDUCES = {"mean", "sum", "amax", "amin", "norm", "std", "var"}
_DEEP = 4


def dimensions(script: Script, read: FileRead) -> Iterator[Said]:
    """ADV012: `x.mean(dim=tuple(range(1, y.ndim)))` where y has one axis only.

    The tuple is empty then, and an empty tuple reduces everything, the rows as well. Only where
    the source shows that y was itself reduced to one number a row.
    """
    del read
    known = Definitions(script.source.tree)
    for owner, node in known.everything():
        for call in ast.walk(node):
            found = _over_other(call)
            if found is None or not _is_flat(known, node, found, call, 0):
                continue
            name = f"{owner.name}.{node.name}" if owner else node.name
            yield tell_at(
                "ADV012",
                place(name, call),
                call,
                f"the axes to reduce are counted on `{found}`, which has one number a row: no "
                "axis is left, and a reduction over no axis takes the rows as well",
                "one number for the whole batch",
                "one number a row, by the axes of the tensor that is reduced",
            )


def _over_other(call: ast.AST) -> str | None:
    """The tensor that the axes are counted on, if it is not the one that is reduced."""
    if not (isinstance(call, ast.Call) and called(call) in _REDUCES):
        return None
    own = call.func.value if isinstance(call.func, ast.Attribute) else None
    given = [*(k.value for k in call.keywords if k.arg in ("dim", "axis")), *call.args]
    of = next(filter(None, map(_counted, given)), None)
    if own is None or of is None:
        return None
    inside = {n.id for part in (own, *call.args[:1]) for n in ast.walk(part)
              if isinstance(n, ast.Name)} - _names_of(given)  # fmt: skip
    return of if inside and of not in inside else None


def _names_of(given: list[ast.expr]) -> set[str]:
    """The names in the axes themselves."""
    return {n.id for one in given if _counted(one) for n in ast.walk(one)
            if isinstance(n, ast.Name)}  # fmt: skip


def _counted(node: ast.expr) -> str | None:
    """`y` of `tuple(range(1, y.ndim))`, in its spellings."""
    match node:
        case ast.Call(func=ast.Name(id="tuple" | "list"), args=[inner]):
            return _counted(inner)
        case ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=1), many]):
            match many:
                case ast.Attribute(value=ast.Name(id=name), attr="ndim"):
                    return name
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="dim"), args=[]):
                    return name
                case ast.Call(
                    func=ast.Name(id="len"),
                    args=[ast.Attribute(value=ast.Name(id=name), attr="shape")],
                ):
                    return name
    return None


def _is_flat(
    known: Definitions, node: FunctionNode, name: str, use: ast.AST | None, depth: int
) -> bool:
    """Whether a local variable has one number a row where it is used: by every assignment."""
    if depth > _DEEP:
        return False
    line = getattr(use, "lineno", None)
    written = [s for s in ast.walk(node) if isinstance(s, ast.Assign) and
               (line is None or s.lineno < line) and _binds(s, name) is not None]  # fmt: skip
    if not written:
        return _documented_flat(node, name)
    last = max(written, key=lambda s: s.lineno)
    index, value = _binds(last, name), last.value
    if isinstance(value, ast.Call) and called(value) in _REDUCES and index == -1:
        own = value.func.value if isinstance(value.func, ast.Attribute) else None
        dims = [*(k.value for k in value.keywords if k.arg in ("dim", "axis")), *value.args]
        return own is not None and any(_counted(d) == ast.unparse(own) for d in dims)
    if isinstance(value, ast.Call):
        return _returns_flat(known, value, index if index is not None else -1, depth)
    return False


def _binds(statement: ast.Assign, name: str) -> int | None:
    """−1 for the whole value, the place in a tuple, or None."""
    for target in statement.targets:
        match target:
            case ast.Name(id=own) if own == name:
                return -1
            case ast.Tuple(elts=parts):
                for index, part in enumerate(parts):
                    if isinstance(part, ast.Name) and part.id == name:
                        return index
    return None


def _returns_flat(known: Definitions, call: ast.Call, index: int, depth: int) -> bool:
    """Whether all returns of a local function give a flat variable there."""
    homes = [n for _, n in known.everything() if n.name == called(call)]
    if len(homes) != 1:
        return False
    found = []
    for inner in ast.walk(homes[0]):
        if isinstance(inner, ast.Return) and inner.value is not None:
            value: ast.expr | None = inner.value
            if index >= 0:
                parts = value.elts if isinstance(value, ast.Tuple) else []
                value = parts[index] if index < len(parts) else None
            found.append(isinstance(value, ast.Name) and
                         _is_flat(known, homes[0], value.id, inner, depth + 1))  # fmt: skip
    return bool(found) and all(found)


def _documented_flat(node: FunctionNode, name: str) -> bool:
    """Whether the docstring says that a parameter is `(B,)`."""
    arguments = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    doc = ast.get_docstring(node) or ""
    said = re.search(rf"\b{re.escape(name)}`*\s*:?\s*\(\s*\w+\s*,\s*\)", doc)
    return name in arguments and said is not None
