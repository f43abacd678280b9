"""Which functions of a script play which part, from names, signatures and call sites."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from rlproof.read.names import (
    Slot,
    advantage_slot,
    bare_slot,
    gradient_slot,
    is_logp,
    is_negative_logp,
    objective_slot,
    token_slot,
    words,
)
from rlproof.read.targets import FunctionNode, Parameter, Role, Target, module_functions

_ADVANTAGE_WORDS = {"adv", "advs", "advantage", "advantages", "zscore", "standardize", "whiten"}
_ROLLOUT_WORDS = {"rollout", "rollouts", "sample", "generate", "collect", "explore"}
_TRAIN_WORDS = {"train", "fit", "run", "main", "learn", "optimize", "training", "loop"}
_FRACTION_WORDS = {"frac", "fraction", "ratio", "rate", "share", "clipfrac"}


def recognise(tree: ast.Module) -> tuple[Target, ...]:
    """All targets of a module, in source order."""
    found = [
        target
        for node in module_functions(tree)
        if (target := _target(node, CallSites(tree, node.name)))
    ]
    found = [target for target in found if not _is_helper(target, found, tree)]
    names = {t.name for t in found if t.role in (Role.LOSS, Role.ADVANTAGES)}
    known = {t.name for t in found}
    for node in module_functions(tree):
        if node.name not in known and _is_train(node, names):
            found.append(Target(Role.TRAIN, node, tuple(_parameters(node, lambda _: None))))
    return tuple(sorted(found, key=lambda t: t.node.lineno))


class CallSites:
    """What the calls of one function say of its parameters: the names of the arguments."""

    def __init__(self, tree: ast.Module, name: str) -> None:
        self.calls = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            and node.func.id == name
        ]  # fmt: skip

    def argument_names(self, position: int) -> Iterator[str]:
        """Names given at this position: a variable, an attribute, or the function called."""
        for call in self.calls:
            if position < len(call.args):
                match call.args[position]:
                    case ast.Name(id=name) | ast.Attribute(attr=name):
                        yield name
                    case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                        yield name


def _is_helper(target: Target, found: list[Target], tree: ast.Module) -> bool:
    """A loss that only other losses call is a part of theirs."""
    if target.role is not Role.LOSS:
        return False
    everywhere = len(CallSites(tree, target.name).calls)
    inside = sum(
        len(CallSites(ast.Module([other.node], []), target.name).calls)
        for other in found
        if other.role is Role.LOSS and other is not target
    )
    return everywhere > 0 and inside == everywhere


def _target(node: FunctionNode, sites: CallSites) -> Target | None:
    for role, slot_of, accepts in _RULES:
        parameters = tuple(_parameters(node, slot_of, sites))
        target = Target(role, node, parameters)
        if accepts(target, set(words(node.name))):
            return target
    return None


def _parameters(
    node: FunctionNode, slot_of: Callable[[str], Slot | None], sites: CallSites | None = None
) -> Iterator[Parameter]:
    args = node.args
    positional = [*args.posonlyargs, *args.args]
    first = len(positional) - len(args.defaults)
    slots = [slot_of(arg.arg) for arg in positional]
    if sites and slot_of is objective_slot:
        slots = _settle(slots, [arg.arg for arg in positional], sites)
    for i, (arg, slot) in enumerate(zip(positional, slots, strict=True)):
        default = args.defaults[i - first] if i >= first else None
        yield Parameter(arg.arg, slot, i < first, default, is_negative_logp(arg.arg))
    for arg, keyword_default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        required = keyword_default is None
        negative = is_negative_logp(arg.arg)
        yield Parameter(arg.arg, slot_of(arg.arg), required, keyword_default, negative)


def _settle(slots: list[Slot | None], names: list[str], sites: CallSites) -> list[Slot | None]:
    """Fill the slots that names leave open: bare `new`, `old`, `ref`, then the call sites."""
    for i, name in enumerate(names):
        candidates = [bare_slot(name), *map(objective_slot, sites.argument_names(i))]
        slots[i] = slots[i] or next((s for s in candidates if s and s not in slots), None)
    return slots


def _is_loss(target: Target, parts: set[str]) -> bool:
    return target.has(Slot.NEW, Slot.ADVANTAGES) and not parts & {"grad", "gradient", "adv"}


def _is_clip_fraction(target: Target, parts: set[str]) -> bool:
    named = bool(parts & {"clip", "clipped", "clipfrac"}) and bool(parts & _FRACTION_WORDS)
    return named and target.has(Slot.NEW, Slot.OLD) and not target.has(Slot.ADVANTAGES)


def _is_shaping(target: Target, _: set[str]) -> bool:
    return target.has(Slot.REWARDS, Slot.NEW, Slot.REF) and not target.has(Slot.ADVANTAGES)


def _is_advantages(target: Target, parts: set[str]) -> bool:
    if not target.parameters or parts & (_ROLLOUT_WORDS | _TRAIN_WORDS):
        return False
    grouped = target.has(Slot.GROUP_SIZE) or target.has(Slot.GROUP_IDS)
    named = bool(parts & _ADVANTAGE_WORDS) or {"normalize", "rewards"} <= parts
    return target.has(Slot.REWARDS) and (named or grouped)


def _is_log_probs(target: Target, _: set[str]) -> bool:
    has_policy = target.has(Slot.LOGITS) or target.has(Slot.THETA)
    return is_logp(target.name) and has_policy and target.has(Slot.TOKENS)


def _is_numeric_gradient(target: Target, parts: set[str]) -> bool:
    return bool(parts & {"grad", "gradient"}) and target.has(Slot.FUNCTION, Slot.THETA)


def _is_rollout(_: Target, parts: set[str]) -> bool:
    return bool(parts & _ROLLOUT_WORDS)


def _is_train(node: FunctionNode, objectives: set[str]) -> bool:
    """A function that loops and calls a loss or advantages of this script, or says it trains."""
    loops = any(isinstance(n, ast.For | ast.While) for n in ast.walk(node))
    called = {
        n.func.id
        for n in ast.walk(node)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
    }
    return loops and bool(called & objectives)


_RULES: tuple[
    tuple[Role, Callable[[str], Slot | None], Callable[[Target, set[str]], bool]], ...
] = (
    (Role.CLIP_FRACTION, objective_slot, _is_clip_fraction),
    (Role.LOSS, objective_slot, _is_loss),
    (Role.SHAPING, objective_slot, _is_shaping),
    (Role.ADVANTAGES, advantage_slot, _is_advantages),
    (Role.LOG_PROBS, token_slot, _is_log_probs),
    (Role.NUMERIC_GRADIENT, gradient_slot, _is_numeric_gradient),
    (Role.ROLLOUT, lambda _: None, _is_rollout),
)
