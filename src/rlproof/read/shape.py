"""The shape of a clipped surrogate, by data flow alone: for functions whose names say nothing.

    exp(x − y), then a choice (min, max) between two products with z

makes x the new and y the old log-probs and z the advantages. Nothing less is taken for a loss: a
kernel or a softmax has exponentials of differences too.
"""

from __future__ import annotations

import ast

from rlproof.read.flow import Flow
from rlproof.read.landmarks import CLIPPERS, called
from rlproof.read.names import Slot
from rlproof.read.targets import FunctionNode

_PICKERS = {"min", "max", "minimum", "maximum", "fmin", "fmax"}
_SUMS = {"sum", "mean"}
_EXPONENTIALS = {"exp", "exp_", "expm1"}


def surrogate_slots(node: FunctionNode, names: list[str]) -> dict[str, Slot]:
    """Slots of the parameters of a function of this shape; empty for any other."""
    flow = _flow(node, names)
    return _slots(flow) if flow else {}


def local_slots(node: FunctionNode) -> dict[str, Slot]:
    """Slots of the variables of such a function, where what it computes itself has the parts.

    A variable stands for itself where it is assigned what a call, a key or an attribute gives.
    """
    picks = {called(n) for n in ast.walk(node) if isinstance(n, ast.Call)}
    if not picks & _EXPONENTIALS or not picks & _PICKERS:
        return {}
    own: dict[ast.expr, str] = {}
    for statement in ast.walk(node):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_given(value):
                own[value] = name
    args = node.args
    inside = {n.id for value in own for n in ast.walk(value) if isinstance(n, ast.Name)}
    given = {a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)}
    names = given - inside  # what others are taken out of has no part itself
    flow = Flow(node, {name: name for name in names}, own)
    found = _slots(flow)
    return {**found, **_used(flow, (names | set(own.values())) - set(found))} if found else {}


def _is_given(value: ast.expr) -> bool:
    """Whether a value comes out of something else, and is not computed from arrays here."""
    if isinstance(value, ast.Call):
        return called(value) not in _EXPONENTIALS | _PICKERS | CLIPPERS | _SUMS
    return isinstance(value, ast.Subscript | ast.Attribute)


def _slots(flow: Flow) -> dict[str, Slot]:
    ratio = _ratio(flow)
    if ratio is None:
        return {}
    new, old = ratio
    for chosen in flow.order:
        picks = isinstance(chosen, ast.Call) and called(chosen) in _PICKERS
        if picks and {new, old} < flow.taints[chosen]:
            advantages = _factors(flow, chosen) - {new, old}
            if len(advantages) == 1:
                found = {new: Slot.NEW, old: Slot.OLD, advantages.pop(): Slot.ADVANTAGES}
                return _with_reference(flow, found)
    return {}


def used_as(node: FunctionNode, unknown: list[str]) -> dict[str, Slot]:
    """Slots of parameters of a loss by their use: what is multiplied and counted is the mask.

    `(x * m).sum() / m.sum()` makes m the mask, `clamp(1 − e, 1 + e)` makes e the clip range.
    """
    flow = _flow(node, unknown)
    return _used(flow, set(unknown)) if flow else {}


def _flow(node: FunctionNode, names: list[str]) -> Flow | None:
    """Data flow of names; none through expressions that are nested too deeply to follow."""
    try:
        return Flow(node, {name: name for name in names})
    except RecursionError:
        return None


def _used(flow: Flow, unknown: set[str]) -> dict[str, Slot]:
    found: dict[str, Slot] = {}
    counted = {name for name in unknown if _is_counted(flow, name)}
    masks = [name for name in counted if _multiplies(flow, name)]
    if len(masks) == 1:
        found[masks[0]] = Slot.MASK
    ranges = {name for name in unknown if _bounds_a_clip(flow, name)}
    if len(ranges) == 1:
        found[ranges.pop()] = Slot.CLIP
    return found


def _is_counted(flow: Flow, name: str) -> bool:
    """Whether a sum of nothing but this parameter is divided by."""
    return any(
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Div)
        and flow.taints[node.right] == {name}
        and any(isinstance(n, ast.Call) and called(n) == "sum" for n in ast.walk(node.right))
        for node in flow.order
    )


def _multiplies(flow: Flow, name: str) -> bool:
    return any(
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Mult)
        and any(isinstance(side, ast.Name) and side.id == name for side in (node.left, node.right))
        for node in flow.order
    )


def _bounds_a_clip(flow: Flow, name: str) -> bool:
    """Whether 1 − e and 1 + e are the bounds of one call."""
    for node in flow.order:
        if isinstance(node, ast.Call):
            bounds = (*node.args, *(k.value for k in node.keywords))
            signs = {type(b.op) for b in bounds if isinstance(b, ast.BinOp)
                     and isinstance(b.left, ast.Constant) and b.left.value == 1
                     and isinstance(b.right, ast.Name) and b.right.id == name}  # fmt: skip
            if signs == {ast.Sub, ast.Add}:
                return True
    return False


def _ratio(flow: Flow) -> tuple[str, str] | None:
    """x and y of the first exp(x − y), each made of one parameter."""
    for node in flow.order:
        if isinstance(node, ast.Call) and called(node) in ("exp", "exp_"):
            pair = _difference(flow, node)
            if pair is not None:
                return pair
    return None


def _difference(flow: Flow, call: ast.Call) -> tuple[str, str] | None:
    """The two parameters whose difference a call is given, itself or under a variable's name."""
    taint = flow.taints[call]
    for node in flow.order:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            left, right = flow.taints[node.left], flow.taints[node.right]
            if len(left) == len(right) == 1 and left != right and left | right == taint:
                return next(iter(left)), next(iter(right))
    return None


def _factors(flow: Flow, chosen: ast.expr) -> set[str]:
    """Parameters that stand alone on one side of a product with the ratio."""
    found: set[str] = set()
    for node in flow.order:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            sides = flow.taints[node.left], flow.taints[node.right]
            alone = [side for side in sides if len(side) == 1]
            if len(alone) == 1 and flow.taints[node] <= flow.taints[chosen]:
                found |= alone[0]
    return found


def _with_reference(flow: Flow, slots: dict[str, Slot]) -> dict[str, Slot]:
    """A further exp(r − x), the penalty of k3, makes r the reference."""
    new = next(name for name, slot in slots.items() if slot is Slot.NEW)
    for node in flow.order:
        if isinstance(node, ast.Call) and called(node) in _EXPONENTIALS:
            pair = _difference(flow, node)
            others = set(pair or ()) - set(slots)
            if pair and new in pair and len(others) == 1:
                return slots | {others.pop(): Slot.REF}
    return slots
