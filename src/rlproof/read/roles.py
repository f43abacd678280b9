"""Which functions of a script play which part, from names, signatures and call sites."""

from __future__ import annotations

import ast
from collections.abc import Callable

from rlproof.read.descriptions import described
from rlproof.read.extraction import extraction_target
from rlproof.read.gauges import RULES, filter_slot, is_group_filter
from rlproof.read.names import (
    Slot,
    advantage_slot,
    entropy_slot,
    gradient_slot,
    is_logp,
    mask_slot,
    objective_slot,
    says_clip_fraction,
    token_slot,
    words,
)
from rlproof.read.outline.inputs import said
from rlproof.read.outline.layouts import laid_out
from rlproof.read.parameters import Calls, CallSites, calls_by_name, parameters
from rlproof.read.records import record_slots
from rlproof.read.rewards import reward_target
from rlproof.read.targets import FunctionNode, Role, Target, module_functions

_ADVANTAGE_WORDS = {"adv", "advs", "advantage", "advantages", "zscore", "standardize", "whiten"}
_ROLLOUT_WORDS = {"rollout", "rollouts", "sample", "generate", "collect", "explore"}
_TRAIN_WORDS = {"train", "fit", "run", "main", "learn", "optimize", "training", "loop"}
_STATISTIC_WORDS = {
    "stats", "mean", "pass", "best", "accuracy", "plot", "moving", "discount", "top", "log",
    "print", "metric", "metrics", "summary", "save", "load", "test",
}  # fmt: skip
_METRIC_WORDS = {"metric", "metrics", "stats", "log", "diagnostics", "monitor", "report", "eval"}
_NORMALISES = {"normalize", "normalise", "standardize", "standardise", "whiten", "center", "centre"}
_NO_ENTROPY = {
    "loss", "bonus", "coef", "coeff", "cross", "term", "reg", "regularizer", "penalty", "weight",
    "kl", "mask", "clip", "top", "threshold", "schedule", "target", "grad", "advantage", "adv",
    "gap", "diff", "delta", "change", "relative", "ratio", "rate",
}  # fmt: skip


def recognise(tree: ast.Module, imported: tuple[Target, ...] = ()) -> tuple[Target, ...]:
    """All targets of a module, in source order; a loop may call those that it imports."""
    calls = calls_by_name(tree)
    found = [
        target
        for node in module_functions(tree)
        if not node.name.startswith("test_")
        and (target := _target(node, CallSites(calls.get(node.name, []))))
    ]
    inner = {t.name: calls_by_name(t.node) for t in found if t.role is Role.LOSS}
    found = [t for t in found if not _is_helper(t, found, inner, len(calls.get(t.name, [])))]
    names = {t.name for t in (*imported, *found) if t.role in (Role.LOSS, Role.ADVANTAGES)}
    known = {t.name for t in found}
    for node in module_functions(tree):
        if node.name not in known and _is_train(node, names):
            found.append(Target(Role.TRAIN, node, parameters(node, lambda _: None)))
    return tuple(sorted(found, key=lambda t: t.node.lineno))


def _is_helper(
    target: Target,
    found: list[Target],
    inner: dict[str, Calls],
    everywhere: int,
) -> bool:
    """A loss of one element, which only other losses call, entry by entry, is a part of theirs.

    One that they give whole arrays is a loss itself, and perhaps the only one that can be run.

    Args:
        target: any target.
        found: all of them.
        inner: the calls that each loss makes, by the name that is called.
        everywhere: how often the whole module calls the target.
    """
    if target.role is not Role.LOSS:
        return False
    inside = [
        call
        for other in found
        if other.role is Role.LOSS and other.name not in inner[target.name]
        for call in inner[other.name].get(target.name, [])
        if _is_entry_by_entry(call, other.node)
    ]
    return everywhere > 0 and len(inside) == everywhere


def _is_entry_by_entry(call: ast.Call, caller: FunctionNode) -> bool:
    """Whether an argument is an entry of an array, or a variable of a loop over one."""
    walked = {
        name.id
        for node in ast.walk(caller)
        if isinstance(node, ast.For | ast.comprehension)
        for name in ast.walk(node.target)
        if isinstance(name, ast.Name)
    }
    return any(
        isinstance(argument, ast.Subscript)
        or (isinstance(argument, ast.Name) and argument.id in walked)
        for argument in call.args
    )


def _target(node: FunctionNode, sites: CallSites) -> Target | None:
    if extraction := extraction_target(node):
        return extraction
    for role, slot_of, accepts in _RULES:
        if role is Role.ADVANTAGES:
            slot_of = _of_advantages(node, sites)
        target = Target(role, node, parameters(node, slot_of, sites))
        if accepts(target, set(words(node.name))):
            return target
    return reward_target(node)


def _of_advantages(node: FunctionNode, sites: CallSites) -> Callable[[str], Slot | None]:
    """Slots by how the rewards are laid out, or stand in records, before what names say.

    Names that say nothing may have a docstring, or a call that gives rewards.
    """
    known = {**laid_out([node]), **record_slots(node)}
    told = described(node, advantage_slot) | _given_rewards(node, sites)
    rewards = [a.arg for a in ast.walk(node.args)
               if isinstance(a, ast.arg) and advantage_slot(a.arg) is Slot.REWARDS]  # fmt: skip
    plain = [name for name in rewards if said(name, advantage_slot)]
    others = set(rewards) - set(plain) if plain else set()  # `reward_scale` beside `rewards`

    def slot_of(name: str) -> Slot | None:
        own = None if name in others else advantage_slot(name)
        return known.get(name) or own or told.get(name)

    return slot_of


def _given_rewards(node: FunctionNode, sites: CallSites) -> dict[str, Slot]:
    """The parameter that calls give something called rewards, and its `reshape(-1, k)`."""
    args = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
    given = [
        name
        for i, name in enumerate(args)
        if any(said(n, advantage_slot) is Slot.REWARDS for n in sites.argument_names(i, name))
    ]
    if len(given) != 1:
        return {}
    return {given[0]: Slot.REWARDS, **laid_out([node], given[0])}


def _is_loss(target: Target, parts: set[str]) -> bool:
    trains = parts & {"loss", "objective", "surrogate", "step"} or not parts & (
        _METRIC_WORDS | {"train", "fit", "main"}
    )
    derived = parts & {"grad", "gradient", "adv"} and "loss" not in parts
    other = derived or _without_gradient(target.node)
    return target.has(Slot.NEW, Slot.ADVANTAGES) and bool(trains) and not other


def _without_gradient(node: FunctionNode) -> bool:
    """Whether a decorator switches gradients off: then it evaluates, and trains nothing."""
    names = {n.attr if isinstance(n, ast.Attribute) else getattr(n, "id", "")
             for d in node.decorator_list for n in ast.walk(d)}  # fmt: skip
    return bool(names & {"no_grad", "inference_mode"})


def says_metric(node: FunctionNode) -> bool:
    """Whether a function's name, or a decorator, says that it measures and trains nothing."""
    parts = set(words(node.name))
    trains = parts & {"loss", "objective", "surrogate", "step"}
    derived = parts & {"grad", "gradient"} and "loss" not in parts
    return (
        bool(derived or parts & {"mask", "weights"})
        or (bool(parts & _METRIC_WORDS) and not trains)
        or _without_gradient(node)
    )


def _is_clip_fraction(target: Target, _: set[str]) -> bool:
    return says_clip_fraction(target.name) and target.has(Slot.NEW, Slot.OLD)


def _is_shaping(target: Target, parts: set[str]) -> bool:
    takes = target.has(Slot.REWARDS, Slot.NEW, Slot.REF)
    return takes and not target.has(Slot.ADVANTAGES) and not parts & {"loss", "objective"}


def _is_advantages(target: Target, parts: set[str]) -> bool:
    if not target.parameters or parts & (_ROLLOUT_WORDS | _TRAIN_WORDS | _STATISTIC_WORDS):
        return False
    sizes = [p.name for p in target.parameters if p.slot in (Slot.GROUP_SIZE, Slot.GROUP_IDS)]
    grouped = any(len(name) > 1 for name in sizes)  # a bare n or k may count anything
    named = bool(parts & _ADVANTAGE_WORDS) or (
        "rewards" in parts and bool(parts & {"normalize", "normalized", "normalised", "normalise"})
    )
    scored = target.has(Slot.REWARD_FUNCTION, Slot.RESPONSES) or target.has(Slot.RECORDS)
    grouped = grouped or bool(sizes and parts & _NORMALISES)
    return (scored and named) or (target.has(Slot.REWARDS) and (named or grouped))


def _is_log_probs(target: Target, _: set[str]) -> bool:
    has_policy = target.has(Slot.LOGITS) or target.has(Slot.THETA)
    return is_logp(target.name) and has_policy and target.has(Slot.TOKENS)


def _is_divergence(target: Target, parts: set[str]) -> bool:
    """An estimate of a divergence as a number to look at or to add to a loss."""
    named = bool(parts & {"kl", "kld", "divergence"}) and not parts & {"loss", "coef", "coeff"}
    compares = target.has(Slot.NEW) and (target.has(Slot.REF) or target.has(Slot.OLD))
    return named and compares and _only(target, Slot.NEW, Slot.OLD, Slot.REF, Slot.MASK)


def _is_entropy(target: Target, parts: set[str]) -> bool:
    named = bool(parts & {"entropy", "entropies"}) and not parts & _NO_ENTROPY
    takes = target.has(Slot.LOGITS) or target.has(Slot.NEW)
    return named and takes and _only(target, Slot.LOGITS, Slot.NEW, Slot.MASK)


def _is_completion_mask(target: Target, parts: set[str]) -> bool:
    named = bool(parts & {"mask", "masks"}) and "loss" not in parts
    takes = target.has(Slot.TOKENS, Slot.EOS)
    return named and takes and _only(target, Slot.TOKENS, Slot.EOS, Slot.PAD)


def _only(target: Target, *slots: Slot) -> bool:
    """Whether whatever a call must give plays one of these parts."""
    return all(p.slot in slots for p in target.parameters if p.required)


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
    (Role.GROUP_FILTER, filter_slot, is_group_filter),
    (Role.ADVANTAGES, advantage_slot, _is_advantages),
    (Role.LOG_PROBS, token_slot, _is_log_probs),
    (Role.DIVERGENCE, objective_slot, _is_divergence),
    (Role.ENTROPY, entropy_slot, _is_entropy),
    (Role.COMPLETION_MASK, mask_slot, _is_completion_mask),
    *RULES,
    (Role.NUMERIC_GRADIENT, gradient_slot, _is_numeric_gradient),
    (Role.ROLLOUT, lambda _: None, _is_rollout),
)
