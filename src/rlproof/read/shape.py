"""The shape of a clipped surrogate, by data flow alone: for functions whose names say nothing.

    exp(x − y), then a choice (min, max) between two products with z

makes x the new and y the old log-probs and z the advantages. Nothing less is taken for a loss: a
kernel or a softmax has exponentials of differences too.
"""

from __future__ import annotations

import ast

from rlproof.read.flow import Flow
from rlproof.read.landmarks import called
from rlproof.read.names import Slot
from rlproof.read.targets import FunctionNode

_PICKERS = {"min", "max", "minimum", "maximum", "fmin", "fmax"}
_EXPONENTIALS = {"exp", "exp_", "expm1"}


def surrogate_slots(node: FunctionNode, names: list[str]) -> dict[str, Slot]:
    """Slots of the parameters of a function of this shape; empty for any other."""
    flow = Flow(node, {name: name for name in names})
    ratio = _ratio(flow)
    if ratio is None:
        return {}
    new, old = ratio
    for chosen in flow.order:
        picks = isinstance(chosen, ast.Call) and called(chosen) in _PICKERS
        if picks and {new, old} < flow.taints[chosen]:
            advantages = _factors(flow, chosen) - {new, old}
            if len(advantages) == 1:
                return _with_reference(flow, {new: Slot.NEW, old: Slot.OLD,
                                              advantages.pop(): Slot.ADVANTAGES})  # fmt: skip
    return {}


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
