"""What a script does with each name: called, walked over, asked for keys.

Names are taken together wherever they stand: a rehearsal stands in for what has a name, and one
name rarely means two things in a file.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from rlproof.read.landmarks import called

Uses = dict[str, dict[str, Any]]
_THROUGH = {"enumerate", "tqdm", "iter", "list", "trange", "track", "reversed", "islice", "cycle"}
GIVING = {"sample", "get", "next", "get_batch", "sample_batch", "pop", "popleft", "next_batch"}
"""Methods by which a loader or a buffer gives one batch."""
_TENSORS = {
    "shape", "size", "dim", "mean", "sum", "std", "view", "reshape", "unsqueeze", "squeeze", "to",
    "float", "detach", "items", "keys", "values", "get", "append", "chunk", "split",
    "repeat", "repeat_interleave", "device", "dtype", "clamp", "exp", "long", "int", "bool", "pop",
    "update", "T", "ndim", "numel", "cpu", "cuda", "tolist", "item", "flatten", "expand", "max",
}  # fmt: skip


def uses(tree: ast.Module) -> Uses:
    """By name (of a variable, or of an attribute of `self`), how it is used; `*` has every key."""
    found: Uses = {"*": {"keys": []}}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=func) if name := _name(func):
                _of(found, name)["called"] = True
            case ast.Subscript(value=value, slice=ast.Constant(value=str(key))):
                found["*"]["keys"].append(key)
                if name := _name(value):
                    _add(found, name, "keys", key)
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name != "self":
                _add(found, name, "attributes", attribute)
                if attribute not in _TENSORS:
                    _add(found, name, "fields", attribute)
            case ast.Attribute(value=ast.Attribute() as value, attr=attribute) if _name(value):
                _add(found, _name(value), "attributes", attribute)
            case ast.For(target=target, iter=walked):
                _walk(found, target, walked, rows=False)
            case ast.comprehension(target=target, iter=walked):
                _walk(found, target, walked, rows=True)
            case ast.Assign(targets=[target], value=ast.Call() as call) if name := _giver(call):
                _of(found, name)["items"] = _names(target)
    for name, use in found.items():
        if name != "*":
            _settle(found, use)
    found["*"]["keys"] = list(dict.fromkeys(found["*"]["keys"]))
    return found


def _of(found: Uses, name: str) -> dict[str, Any]:
    return found.setdefault(name, {})


def _add(found: Uses, name: str, kind: str, value: str) -> None:
    kept = _of(found, name).setdefault(kind, [])
    if value not in kept:
        kept.append(value)


def _name(node: ast.expr) -> str:
    """A variable, or an attribute of `self`."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return name
    return ""


def _walk(found: Uses, target: ast.expr, walked: ast.expr, *, rows: bool) -> None:
    while isinstance(walked, ast.Call) and called(walked) in _THROUGH and walked.args:
        if called(walked) == "enumerate" and isinstance(target, ast.Tuple):
            target = target.elts[-1]
        walked = walked.args[0]
    name = _name(walked)
    if not name and isinstance(walked, ast.Call) and isinstance(walked.func, ast.Attribute):
        name = _name(walked.func.value) if walked.func.attr not in {"items", "keys"} else ""
        if walked.func.attr in _TENSORS:
            name = ""
    if name:
        use = _of(found, name)
        use.setdefault("items", _names(target))
        use["by_row"] = use.get("by_row", False) or rows


def _giver(call: ast.Call) -> str:
    """`x` of `next(x)`, `x.sample(…)`."""
    if isinstance(call.func, ast.Name) and call.func.id == "next" and call.args:
        return _name(call.args[0])
    if isinstance(call.func, ast.Attribute) and call.func.attr in GIVING:
        return "" if _is_key(call) else _name(call.func.value)
    return ""


def _is_key(call: ast.Call) -> bool:
    """`batch.get("mask")`."""
    return any(isinstance(a, ast.Constant) and isinstance(a.value, str) for a in call.args)


def _names(target: ast.expr) -> list[str]:
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    return [node.id for node in parts if isinstance(node, ast.Name)]


def _settle(found: Uses, use: dict[str, Any]) -> None:
    """Rows are what a comprehension takes one by one to ask them for keys."""
    items = use.get("items")
    if items and len(items) == 1 and use.get("by_row"):
        item = found.get(items[0], {})
        use["rows"] = bool(item.get("keys") or item.get("fields"))
    if use.get("fields") and not use.get("keys") and not use.get("called"):
        use["keys"] = [f for f in use["fields"] if not f.startswith("_")]


def walks(node: ast.AST) -> Iterator[str]:
    """Names that a function or loop walks over."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.For | ast.comprehension) and (name := _name(inner.iter)):
            yield name
