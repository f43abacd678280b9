"""The parameters of a function with their slots: names first, then call sites, then defaults."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from rlproof.read.descriptions import described
from rlproof.read.names import Slot, bare_slot, is_negative_logp, objective_slot, says_new
from rlproof.read.shape import surrogate_slots, used_as
from rlproof.read.targets import FunctionNode, Parameter

SlotOf = Callable[[str], Slot | None]
Calls = dict[str, list[ast.Call]]
_BOUNDS = (Slot.CLIP, Slot.CLIP_LOW, Slot.CLIP_HIGH)
_STABILISER = 1e-4  # an `eps` of this size or less is no clip range


class CallSites:
    """What the calls of one function say of its parameters: the names of the arguments."""

    def __init__(self, calls: list[ast.Call]) -> None:
        self.calls = calls

    def argument_names(self, position: int, parameter: str) -> Iterator[str]:
        """Names given to a parameter: a variable, an attribute, or the function called."""
        for call in self.calls:
            given = [k.value for k in call.keywords if k.arg == parameter]
            for argument in [*call.args[position : position + 1], *given]:
                match argument:
                    case ast.Name(id=name) | ast.Attribute(attr=name):
                        yield name
                    case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                        yield name


def calls_by_name(tree: ast.AST) -> Calls:
    """All calls of plain names below a node, by name: one walk for all functions."""
    found: Calls = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found.setdefault(node.func.id, []).append(node)
    return found


def parameters(
    node: FunctionNode, slot_of: SlotOf, sites: CallSites | None = None
) -> tuple[Parameter, ...]:
    """All parameters, `*args` and `**kwargs` left out, in the order of the signature."""
    found = list(_named(node, slot_of))
    if slot_of is objective_slot:
        found = [_without_letters(parameter) for parameter in found]
        found = _described(_fill(_apart(found), node, sites), node)
        found = _used(_shaped(found, node), node)
        found = [_no_switch(of_bounds(parameter, found)) for parameter in found]
    return tuple(found)


def _no_switch(parameter: Parameter) -> Parameter:
    """`mask_tool_use=False` switches a mask on, and is none."""
    switch = isinstance(parameter.default, ast.Constant) and isinstance(
        parameter.default.value, bool
    )
    return replace(parameter, slot=None) if switch and parameter.slot is Slot.MASK else parameter


def _described(found: list[Parameter], node: FunctionNode) -> list[Parameter]:
    """Parts that only the docstring or an annotation names."""
    open_ = {p.name for p in found if p.slot is None or len(p.name) == 1}
    slots = described(node, lambda name: None if name in open_ else objective_slot(name))
    taken = {p.slot for p in found if p.name not in slots}
    return [
        replace(p, slot=slots[p.name]) if slots.get(p.name) not in {None, *taken} else p
        for p in found
    ]


def _used(found: list[Parameter], node: FunctionNode) -> list[Parameter]:
    """Of a loss, the mask and the clip range by what is done with them."""
    taken = {p.slot for p in found}
    unknown = [p.name for p in found if p.slot is None]
    if not unknown or not {Slot.NEW, Slot.ADVANTAGES} <= taken:
        return found
    slots = {name: slot for name, slot in used_as(node, unknown).items() if slot not in taken}
    return [replace(p, slot=slots.get(p.name, p.slot)) for p in found]


def _named(node: FunctionNode, slot_of: SlotOf) -> Iterator[Parameter]:
    args = node.args
    positional = [*args.posonlyargs, *args.args]
    first = len(positional) - len(args.defaults)
    for i, arg in enumerate(positional):
        default = args.defaults[i - first] if i >= first else None
        yield _parameter(arg.arg, slot_of, i < first, default)
    for arg, keyword_default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        yield _parameter(arg.arg, slot_of, keyword_default is None, keyword_default)


def _parameter(name: str, slot_of: SlotOf, required: bool, default: ast.expr | None) -> Parameter:
    return Parameter(name, slot_of(name), required, default, is_negative_logp(name))


def _shaped(found: list[Parameter], node: FunctionNode) -> list[Parameter]:
    """Where names and call sites say nothing of any policy, the shape of the code may."""
    if any(p.slot in (Slot.NEW, Slot.OLD, Slot.REF) for p in found):
        return found
    slots = surrogate_slots(node, [p.name for p in found])
    return [replace(p, slot=slots.get(p.name, p.slot)) for p in found]


def _without_letters(parameter: Parameter) -> Parameter:
    """A single `c` that every call must give is no cap: only its default could make it one."""
    guessed = parameter.slot is Slot.CAP and len(parameter.name) == 1 and parameter.required
    return replace(parameter, slot=None) if guessed else parameter


def _apart(found: list[Parameter]) -> list[Parameter]:
    """Plain log-probs beside others that are called new are those of the rollout.

    Of any others the first are the new ones: what the rest is, their names don't say.
    """
    new = [p for p in found if p.slot is Slot.NEW]
    plain = [p for p in new if not says_new(p.name)]
    has_old = any(p.slot is Slot.OLD for p in found)
    if len(new) == 2 and len(plain) == 1 and not has_old:
        return [replace(p, slot=Slot.OLD) if p in plain else p for p in found]
    first = next((p for p in new if says_new(p.name)), new[0] if new else None)
    return [replace(p, slot=None) if p in new and p is not first else p for p in found]


def _fill(found: list[Parameter], node: FunctionNode, sites: CallSites | None) -> list[Parameter]:
    """Slots that names leave open: bare `new`, `old`, `ref`, then the names at call sites."""
    doc = (ast.get_docstring(node) or "").lower()
    plain_probabilities = "probabilit" in doc and "log" not in doc
    for i, parameter in enumerate(found):
        taken = {p.slot for p in found}
        bare = None if plain_probabilities else bare_slot(parameter.name)
        names = sites.argument_names(i, parameter.name) if sites else ()
        given = map(objective_slot, names)
        if parameter.slot is None:
            slot = next((s for s in [bare, *given] if s and s not in taken), None)
            found[i] = replace(parameter, slot=slot)
    return found


def of_bounds(parameter: Parameter, found: list[Parameter]) -> Parameter:
    """Clip bounds that are none: a stabiliser, an absolute bound, a pair, a switched-off one."""
    if parameter.slot not in _BOUNDS or parameter.default is None:
        return parameter
    default = number(parameter.default)
    named_clip = "clip" in parameter.name.lower()
    another = any(p.slot in _BOUNDS and "clip" in p.name.lower() for p in found)
    if default is not None and default <= _STABILISER and not named_clip:
        return replace(parameter, slot=Slot.EPS)
    if not named_clip and another and re.fullmatch(r"eps|epsilon", parameter.name):
        return replace(parameter, slot=Slot.EPS)
    absolute = default is not None and (
        default >= 1 or (parameter.slot is Slot.CLIP_LOW and default > 0.5)
    )
    constant = isinstance(parameter.default, ast.Name | ast.Attribute)
    return (
        replace(parameter, slot=None)
        if absolute or (default is None and not constant)
        else parameter
    )


def number(node: ast.expr | None) -> float | None:
    """The value of a numeric constant, with its sign; None for anything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = number(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.Constant) and not isinstance(node.value, bool):
        return node.value if isinstance(node.value, int | float) else None
    return None
