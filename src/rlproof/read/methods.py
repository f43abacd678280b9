"""Methods that score tokens with a model, as functions that need no object.

What a method reads of `self` becomes a parameter (`self.args.temperature` is `self_temperature`),
methods of the same class that it calls become functions inside it, and what only says where
things run is left out. Statements keep their lines.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from rlproof.read.extraction import extraction_target, key_slot, may_be_model, names_log_probs
from rlproof.read.names import Slot
from rlproof.read.outline.neutral import DROPPED_CONTEXTS, GATHERS, NEUTRAL
from rlproof.read.targets import FunctionNode, Origin, Target

_KEPT_DECORATORS = {"no_grad", "inference_mode", "enable_grad"}
_PLAIN: Mapping[str, Any] = {
    "model_kwarg_keys": ("input_ids", "attention_mask", "position_ids", "logits_to_keep"),
    "padding_free": False, "packing_samples": False, "is_vlm": False, "is_encoder_decoder": False,
    "gradient_checkpointing": False, "use_remove_padding": False,
}  # fmt: skip
"""Values of settings of a text model on one device, one text a row."""
_SLOTS = {Slot.TEMPERATURE, Slot.PAD, Slot.EOS, Slot.TOKENIZER, Slot.CHUNK, Slot.DEVICE}


def extraction_methods(tree: ast.Module) -> list[Target]:
    """The methods of a module's classes that ask a model for log-probs, as functions."""
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    found: list[Target] = []
    for owner in classes.values():
        methods = _methods(owner, classes)
        for node in owner.body:
            if isinstance(node, FunctionNode) and not node.name.startswith("__"):
                if target := _target(owner, node, methods):
                    origin = Origin(f"{owner.name}.{node.name}", f"method:{len(found)}")
                    found.append(Target(target.role, target.node, target.parameters, origin))
    return found


def _methods(
    owner: ast.ClassDef, classes: Mapping[str, ast.ClassDef], depth: int = 8
) -> dict[str, FunctionNode]:
    """The methods of a class, those of its bases in this file included."""
    found: dict[str, FunctionNode] = {}
    for base in owner.bases if depth else ():
        if isinstance(base, ast.Name) and base.id in classes:
            found |= _methods(classes[base.id], classes, depth - 1)
    return found | {n.name: n for n in owner.body if isinstance(n, FunctionNode)}


def _target(
    owner: ast.ClassDef, node: FunctionNode, methods: Mapping[str, FunctionNode]
) -> Target | None:
    if not names_log_probs(node.name) and not any(map(_says_logits, _deep(node, methods))):
        return None
    freed = _Freed(owner.name, methods)
    try:
        found = extraction_target(freed.function(node))
    except (_StuckError, RecursionError):
        return None
    if found is None:
        return None
    unseen = set(freed.given) - _told_apart(found.node)
    parameters = tuple(
        replace(p, slot=Slot.UNSEEN) if p.slot is None and p.name in unseen else p
        for p in found.parameters
    )
    return replace(found, parameters=parameters)


def _told_apart(node: FunctionNode) -> set[str]:
    """Names that are asked whether they are None: no stand-in could answer that."""
    tests = (n for n in ast.walk(node) if isinstance(n, ast.Compare))
    return {
        side.id
        for test in tests
        if any(isinstance(op, ast.Is | ast.IsNot) for op in test.ops)
        for side in (test.left, *test.comparators)
        if isinstance(side, ast.Name)
    }


def _says_logits(node: ast.AST) -> bool:
    return getattr(node, "attr", getattr(node, "value", None)) == "logits"


def _deep(node: FunctionNode, methods: Mapping[str, FunctionNode]) -> Iterator[ast.AST]:
    """Everything in a method and in those that it calls."""
    seen: set[str] = set()
    left = [node]
    while left:
        for inner in ast.walk(left.pop()):
            yield inner
            if isinstance(inner, ast.Attribute) and inner.attr in methods and _on_self(inner):
                if inner.attr not in seen:
                    seen.add(inner.attr)
                    left.append(methods[inner.attr])


def _on_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


class _StuckError(Exception):
    """The method needs the object itself."""


class _Freed(ast.NodeTransformer):
    """Takes `self` out of a method."""

    def __init__(self, owner: str, methods: Mapping[str, FunctionNode]) -> None:
        self.owner = owner
        self.methods = methods
        self.given: dict[str, None] = {}
        self.helpers: dict[str, FunctionNode | None] = {}

    def function(self, node: FunctionNode) -> ast.FunctionDef:
        """The method as a function of its own parameters and of what it reads of `self`."""
        if isinstance(node, ast.AsyncFunctionDef):
            raise _StuckError
        made = self._freed(node)
        helpers = [helper for helper in self.helpers.values() if helper]
        made.body = [*helpers, *made.body]
        extra = [ast.copy_location(ast.arg(name), node) for name in self.given]
        made.args.kwonlyargs += extra
        made.args.kw_defaults += [None] * len(extra)
        return ast.fix_missing_locations(made)

    def _freed(self, node: FunctionNode) -> ast.FunctionDef:
        made = copy.deepcopy(node)
        assert isinstance(made, ast.FunctionDef)
        if not _is_static(node):
            if not made.args.args or made.args.args[0].arg not in ("self", "cls"):
                raise _StuckError
            made.args.args = made.args.args[1:]
        made.decorator_list = [d for d in made.decorator_list if _last(d) in _KEPT_DECORATORS]
        made.body = [s for old in made.body for s in _listed(self.visit(old))]
        return made

    def visit_With(self, node: ast.With) -> ast.AST | list[ast.stmt]:
        node.items = [i for i in node.items if not self._only_says_where(i.context_expr)]
        if node.items:
            return self.generic_visit(node)
        return [s for old in node.body for s in _listed(self.visit(old))]

    def _only_says_where(self, node: ast.expr) -> bool:
        func = node.func if isinstance(node, ast.Call) else node
        return _reads_self(func) and _last(node) in DROPPED_CONTEXTS

    def visit_Call(self, node: ast.Call) -> ast.AST:
        func = node.func
        match node:
            case ast.Call(
                func=ast.Name(id="getattr"), args=[ast.Name(id="self"), ast.Constant(), default]
            ):
                return self.visit(default)  # type: ignore[no-any-return]
        if isinstance(func, ast.Attribute) and _reads_self(func):
            if func.attr in GATHERS and node.args:
                return self.visit(node.args[0])  # type: ignore[no-any-return]
            if _on_self(func) and func.attr in self.methods:
                node.func = ast.copy_location(ast.Name(self._helper(func.attr), ast.Load()), func)
                node.args = [self.visit(a) for a in node.args]
                node.keywords = [self.visit(k) for k in node.keywords]
                return node
        return self.generic_visit(node)

    def _helper(self, name: str) -> str:
        made = f"_self_{name}"
        if made not in self.helpers:
            self.helpers[made] = None  # it may call itself
            helper = self._freed(self.methods[name])
            helper.name = made
            self.helpers[made] = helper
        return made

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if not _reads_self(node):
            if isinstance(node.value, ast.Name) and node.value.id == self.owner:
                if node.attr in self.methods:
                    return ast.copy_location(ast.Name(self._helper(node.attr), node.ctx), node)
            return self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            raise _StuckError
        return self._read(node)

    def _read(self, node: ast.Attribute) -> ast.AST:
        """A chain such as `self.args.temperature`: by its first part that is known."""
        if may_be_model(node.attr) or _slot(node.attr) in _SLOTS:
            name = f"self_{node.attr}"
            self.given.setdefault(name)
            return ast.copy_location(ast.Name(name, ast.Load()), node)
        settings = {**NEUTRAL, **_PLAIN}
        if node.attr in settings and not _has_model(node):
            return ast.copy_location(ast.Constant(settings[node.attr]), node)
        if isinstance(node.value, ast.Attribute) and _has_known(node.value):
            node.value = self.visit(node.value)
            return node
        name = "self_" + node.attr
        self.given.setdefault(name)
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in ("self", "cls", "super"):
            raise _StuckError
        return node


def _slot(name: str) -> Slot | None:
    nothing = ast.parse("def nothing(): pass").body[0]
    assert isinstance(nothing, ast.FunctionDef)
    return key_slot(nothing, name)


def _has_known(node: ast.Attribute) -> bool:
    """Whether some part of a chain is a model or a tokenizer."""
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        if may_be_model(inner.attr) or _slot(inner.attr) is Slot.TOKENIZER:
            return True
        inner = inner.value
    return False


def _has_model(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Attribute) and _has_known(node.value)


def _reads_self(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _last(node: ast.expr) -> str:
    func = node.func if isinstance(node, ast.Call) else node
    return func.id if isinstance(func, ast.Name) else getattr(func, "attr", "")


def _is_static(node: FunctionNode) -> bool:
    return any(_last(d) == "staticmethod" for d in node.decorator_list)


def _listed(made: ast.AST | list[ast.stmt]) -> list[ast.stmt]:
    return made if isinstance(made, list) else [made]  # type: ignore[list-item]
