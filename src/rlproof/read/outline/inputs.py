"""Which assigned variables the outlined function is given, instead of computing them."""

from __future__ import annotations

import ast
from collections.abc import Callable

from rlproof.read.names import Slot, words
from rlproof.read.outline.values import POLICIES, Value

_COEFFICIENTS = frozenset({
    Slot.CLIP, Slot.CLIP_LOW, Slot.CLIP_HIGH, Slot.CAP, Slot.BETA, Slot.GROUP_SIZE, Slot.EPS,
    Slot.WIDTH, Slot.ONE, Slot.TEMPERATURE, Slot.SWITCH, Slot.GROUPS,
})  # fmt: skip

_SUMS = {"sum", "nansum", "tolist"}
_CASTS = {"to", "float", "int", "bool", "long", "contiguous", "detach", "clone", "double", "half"}

_STATISTICS = {
    "mean", "std", "var", "max", "min", "avg", "average", "median", "baseline", "baselines", "sum",
    "total", "weights", "weight", "funcs", "func", "fn", "fns", "stats", "stat", "zero", "history",
    "model", "info", "metrics", "component", "components", "names", "keys", "scale", "diff", "num",
    "times", "count", "counts", "number", "clip", "range", "bias", "scaling", "beta", "coef",
}  # fmt: skip


def said(name: str, slot_of: Callable[[str], Slot | None]) -> Slot | None:
    """What a name says inside a region: statistics of rewards are none, switches are settings."""
    slot = slot_of(name)
    if slot is Slot.SWITCH or (slot is Slot.REWARDS and set(words(name)) & _STATISTICS):
        return None
    return slot


def stops(
    slot: Slot | None, name: str, found: Value, value: ast.expr, outer: bool, own: bool
) -> bool:
    """Whether a variable becomes a parameter at this assignment.

    Args:
        slot: the role of its name.
        name: the last part of its name.
        found: what it is made of.
        value: the expression assigned.
        outer: whether it is made outside the innermost loop around the loss.
        own: whether it is an attribute of `self`.
    """
    if slot is None:
        return False
    if slot is Slot.WEIGHTS:
        return found.problem is not None and Slot.NEW not in found.slots
    if slot in _COEFFICIENTS:
        return _coefficient_stops(name, found, value, own)
    if slot is Slot.MASK and found.problem and found.slots & {Slot.NEW, Slot.OLD}:
        return False  # it depends on how far the policy moved
    if found.problem or (outer and slot not in (Slot.MASK, Slot.LENGTHS)):
        return not found.known
    if slot is Slot.ADVANTAGES and Slot.REWARDS in found.slots and not found.slots & POLICIES:
        return not found.known  # as they are made of rewards here, and nothing of the policy
    if slot in found.slots:
        return is_selection(value) or (slot is Slot.REWARDS and not is_arithmetic(value))
    if found.known:
        return False
    match slot:
        case Slot.OLD | Slot.REF:
            return outer or not found.slots & POLICIES
        case Slot.MASK | Slot.LENGTHS:
            return not found.slots or bool(found.slots & {Slot.REWARDS, Slot.TOKENS})
        case Slot.ADVANTAGES:
            return not found.slots & POLICIES or Slot.REWARDS in found.slots
        case Slot.NEW:
            return not found.slots
        case Slot.REWARDS:
            return not found.slots
    return False


def _coefficient_stops(name: str, found: Value, value: ast.expr, own: bool) -> bool:
    if len(words(name)) == 1 and (len(name) == 1 or name.lower() in {"kl", "index", "groups"}):
        return False
    simple = isinstance(value, ast.Constant | ast.Name | ast.Attribute | ast.Subscript)
    if own and simple and not (isinstance(value, ast.Constant) and value.value is None):
        return not (found.slots - _COEFFICIENTS)
    return found.problem is not None and simple


def is_arithmetic(value: ast.expr) -> bool:
    """Whether numbers are computed, or an array is laid out anew; no sum over parts of it."""
    layouts: list[ast.expr] = [value]
    while isinstance(layouts[-1], ast.Call) and isinstance(layouts[-1].func, ast.Attribute):
        if layouts[-1].func.attr in _SUMS:
            return False
        layouts.append(layouts[-1].func.value)
    inner = layouts[-1]
    if isinstance(inner, ast.BinOp | ast.IfExp | ast.UnaryOp):
        return True
    module = isinstance(inner, ast.Name) and inner.id in ("torch", "np", "numpy", "jnp", "mx")
    return len(layouts) > 1 and isinstance(inner, ast.Name) and not module


def is_selection(value: ast.expr) -> bool:
    """Whether rows or slots are picked out of an array, and nothing is computed."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr not in _CASTS:
            return False
        value = value.func.value
    if not isinstance(value, ast.Subscript):
        return False
    index = value.slice
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return not all(_adds_axis(part) for part in parts)


def _adds_axis(node: ast.expr) -> bool:
    match node:
        case ast.Slice(lower=None, upper=None, step=None):
            return True
        case ast.Constant(value=const):
            return const is None or const is Ellipsis
    return isinstance(node, ast.Attribute) and node.attr == "newaxis"
