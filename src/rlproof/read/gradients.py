"""Whether what a function returns is what a loss is differentiated by."""

from __future__ import annotations

import ast

from rlproof.read.landmarks import called
from rlproof.read.loop.events import is_evaluation, is_model, switches_gradient_off
from rlproof.read.loop.passes import said
from rlproof.read.names import Slot, is_logp, objective_slot
from rlproof.read.targets import FunctionNode, Role, Script, Target


def trains_a_loss(script: Script, target: Target) -> bool:
    """Whether the script gives what this function returns to a loss as its new log-probs."""
    losses = {t.name: t for t in script.of(Role.LOSS) if t.has(Slot.NEW)}
    for around in ast.walk(script.source.tree):
        if not isinstance(around, FunctionNode):
            continue
        held = _holders(around, target.name)
        for call in (n for n in ast.walk(around) if isinstance(n, ast.Call)):
            loss = losses.get(called(call))
            if loss is not None and _is_held(_given(call, loss), held, target.name):
                return True
        if _writes_a_loss(around, held, target.name):
            return True
    return False


def _writes_a_loss(around: FunctionNode, held: set[str], name: str) -> bool:
    """Whether a function weighs advantages by exp(held − old), and asks no model otherwise."""
    quiet = [n for n in ast.walk(around) if isinstance(n, ast.With) and _is_quiet(n)]
    if switches_gradient_off(tuple(around.decorator_list)) or is_evaluation(around.name):
        return False
    calls = [n for n in ast.walk(around) if isinstance(n, ast.Call)]
    others = [c for c in calls if called(c) != name and (is_logp(called(c)) or _asks_model(c))]
    weighs = any(
        objective_slot(said(n)) is Slot.ADVANTAGES
        for n in ast.walk(around)
        if isinstance(n, ast.Name | ast.Attribute | ast.Subscript)
    )
    if quiet or others or not weighs:
        return False
    return any(
        called(call) == "exp" and any(_is_ratio(inner, held, name) for inner in ast.walk(call))
        for call in calls
    )


def _is_quiet(node: ast.With) -> bool:
    return switches_gradient_off(tuple(item.context_expr for item in node.items))


def _asks_model(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name | ast.Attribute) and is_model(said(call.func))


def _is_ratio(node: ast.AST, held: set[str], name: str) -> bool:
    """`held − old`, where the right side is not another answer of the same function."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)):
        return False
    if not _is_held(node.left, held, name) or _is_held(node.right, held, name):
        return False
    return objective_slot(said(node.right)) is Slot.OLD


def _holders(around: FunctionNode, name: str) -> set[str]:
    """Variables that hold nothing but what the function returned."""
    held: set[str] = set()
    other: set[str] = set()
    for node in ast.walk(around):
        if isinstance(node, ast.Assign):
            for variable in node.targets:
                if isinstance(variable, ast.Name):
                    (held if _is_call(node.value, name) else other).add(variable.id)
    return held - other


def _given(call: ast.Call, loss: Target) -> ast.expr | None:
    """The argument that a call of a loss gives as the new log-probs."""
    parameter = loss.parameter(Slot.NEW)
    names = [p.name for p in loss.parameters]
    if parameter is None or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    position = names.index(parameter.name)
    named = [k.value for k in call.keywords if k.arg == parameter.name]
    return next(iter([*call.args[position : position + 1], *named]), None)


def _is_held(node: ast.expr | None, held: set[str], name: str) -> bool:
    return _is_call(node, name) or (isinstance(node, ast.Name) and node.id in held)


def _is_call(node: ast.expr | None, name: str) -> bool:
    return isinstance(node, ast.Call) and called(node) == name
