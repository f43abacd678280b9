"""How a function wants its arguments: which arrays, which shapes, which kind of mask."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from rlproof.read.names import Slot
from rlproof.read.targets import Role, Script, Target

_ARRAY_METHODS = {
    "abs", "clamp", "clip", "detach", "dim", "exp", "float", "masked_fill", "mean", "reshape",
    "size", "squeeze", "std", "sum", "unsqueeze", "var", "view",
}  # fmt: skip
_BY_TOKEN = re.compile(r"\badvantages?`*:?\s+(?:of shape\s+)?\(\s*\w+\s*,\s*\w+\s*\)")
"""`advantages (B, T)`: one for each token."""


@dataclass(frozen=True, slots=True)
class Convention:
    """One way of giving arguments: `array` is list, numpy or torch."""

    array: str
    advantages: str = "row"
    """Shape of the advantages: `row` (B,), `column` (B, 1), or `token` (B, T)."""
    mask: str = "number"
    dtype: str = "float"

    def kind(self, what: str = "float") -> str:
        """The wire name of an array of `float`, `int` or `bool`."""
        if self.array == "list":
            return "list"
        return f"{self.array}:{self.dtype if what == 'float' else what}"

    def mask_kind(self) -> str:
        """The wire name of a mask."""
        return self.kind({"number": "float"}.get(self.mask, self.mask))


def conventions(script: Script, target: Target) -> Iterator[Convention]:
    """Conventions to try, the likeliest first."""
    arrays = _likely_arrays(script, target)
    for array in arrays:
        if array == "list":
            yield from (Convention("list", shape) for shape in ("row", "token"))
            continue
        shapes = ("row", "column", "token")
        if _BY_TOKEN.search(target.doc) or _reduces_slots(target):
            shapes = ("token", "row", "column")
        # rewards come in the precision of the library, where rounding shows
        dtype = "float32" if array == "mlx" and target.role is Role.ADVANTAGES else "float"
        for mask, shape in product(("number", "bool", "int"), shapes):
            yield Convention(array, shape, mask, dtype)
        yield from (
            replace(Convention(array, shape), dtype="float32")
            for shape in shapes
            if array == "torch"
        )


def _reduces_slots(target: Target) -> bool:
    """Whether a loss sums advantages up along their last axis, so that they have slots."""
    advantages = target.parameter(Slot.ADVANTAGES)
    for node in ast.walk(target.node):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="mean" | "sum"),
                args=args,
                keywords=keywords,
            ) if advantages is not None and name == advantages.name:
                given = [*args[:1], *(k.value for k in keywords if k.arg in ("dim", "axis"))]
                if any(ast.unparse(one) == "-1" for one in given):
                    return target.role is Role.LOSS
    return False


def _likely_arrays(script: Script, target: Target) -> list[str]:
    imported = _imported(script.source.tree)
    used = {n.id for n in ast.walk(target.node) if isinstance(n, ast.Name)}
    used |= _annotation_names(target)
    libraries = {imported[name] for name in used if name in imported}
    if "torch" in libraries:
        return ["torch"]
    if "numpy" in libraries:
        return ["numpy", "list"]
    if "mlx" in libraries:
        return ["mlx"]
    present = [lib for lib in ("torch", "numpy") if lib in imported.values()]
    if target.origin and present:
        return [*present[:1], "list", *present[1:]]
    methods = {
        n.attr
        for n in ast.walk(target.node)
        if isinstance(n, ast.Attribute)
        and not (isinstance(n.value, ast.Name) and n.value.id in imported)
    }
    if methods & _ARRAY_METHODS:
        return [*(present or ["numpy"]), "list"]
    return ["list", *(present or ["numpy"])]


def _imported(tree: ast.Module) -> dict[str, str]:
    """Local name to the root package it comes from."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.split(".")[0]
                names[alias.asname or root] = root
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = node.module.split(".")[0]
    return names


def _annotation_names(target: Target) -> set[str]:
    args = target.node.args
    annotations = [a.annotation for a in [*args.posonlyargs, *args.args, *args.kwonlyargs]]
    return {
        node.id
        for annotation in annotations
        if annotation
        for node in ast.walk(annotation)
        if isinstance(node, ast.Name)
    }
