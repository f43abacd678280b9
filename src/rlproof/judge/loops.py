"""What a recorded training loop shows, as facts for the detectors."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from rlproof.faults.model import first_number
from rlproof.faults.seen import LoopSeen, Place
from rlproof.probe.loop import Call, LoopObservation, Recorder, Recording
from rlproof.read.landmarks import called, calls_in, definition, place
from rlproof.read.names import Slot, words
from rlproof.read.targets import Role, Target

_STILL = 1e-3  # a numeric gradient shifts log-probs by its step, 1e-3 at most
_MOVED = 5e-3
_RATE = {"lr", "learning_rate", "alpha", "eta", "rate", "step_size"}


def judge(recorder: Recorder) -> LoopSeen:
    """Record one training function and gather what its runs show."""
    seen = recorder.observe()
    target = recorder.target
    facts: dict[str, Any] = {
        "error": seen.default.error,
        "refreshed": _refreshed(seen),
        "stale": _stale(seen.default),
        "moving_reference": _moving_reference(seen.default),
        "untrained": _untrained(seen.default),
        "ascends": _ascends(seen.slow),
        "metric_eps": _metric_eps(seen),
        "frozen_metric": _frozen_metric(seen.default),
        "odd_mask": _odd_mask(seen.default),
        "prompts_error": seen.prompts.error if seen.prompts else None,
        "settings": seen.default.settings,
    }
    return LoopSeen(target.name, _where(recorder, facts), facts)


def gap(one: Any, other: Any) -> float:
    """The largest absolute difference of two nested lists; infinity if shapes differ."""
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return float("inf")
        return max((gap(a, b) for a, b in zip(one, other, strict=True)), default=0.0)
    if isinstance(one, int | float) and isinstance(other, int | float):
        return abs(one - other)
    return float("inf")


def _groups(recording: Recording) -> Iterator[list[Call]]:
    """Bursts of one rollout on the same rows, in order: one per epoch."""
    for rollout in recording.rollouts:
        groups: dict[tuple[Any, ...], list[Call]] = {}
        for call in rollout.bursts():
            origin = call.origin.get(Slot.NEW)
            tokens = recording.calls[origin].keys.get(Slot.TOKENS) if origin is not None else None
            known = (call.keys.get(Slot.MASK), call.keys.get(Slot.REF), tokens)
            if any(key is not None for key in known):
                groups.setdefault((call.keys.get(Slot.ADVANTAGES), *known), []).append(call)
        yield from groups.values()


def _refreshed(seen: LoopObservation) -> dict[str, Any] | None:
    """The old log-probs of the same rows differ between epochs, and the ratio stays 1."""
    for recording in filter(None, (seen.default, seen.epochs)):
        for group in _groups(recording):
            olds = [call.args.get(Slot.OLD) for call in group]
            if len(group) < 2 or None in olds or gap(olds[0], olds[1]) < 1e-9:
                continue
            if all(gap(c.args.get(Slot.NEW), c.args[Slot.OLD]) < _STILL for c in group):
                shown = [round(first_number(old), 4) for old in olds]
                maker = _maker(recording, group[0], Slot.OLD)
                metric = [c.result for c in recording.calls if c.role is Role.CLIP_FRACTION]
                return {"olds": shown, "line": maker, "metric": metric, "call": group[0]}
    return None


def _maker(recording: Recording, call: Call, slot: Slot) -> int | None:
    """The line of the call whose very result this argument is."""
    number = call.origin.get(slot)
    return None if number is None else recording.calls[number].line


def _stale(recording: Recording) -> dict[str, Any] | None:
    """From the second rollout on, the first ratio is not 1, though it was in the first."""
    firsts = [bursts[0] for r in recording.rollouts if (bursts := r.bursts())]
    gaps = [
        gap(c.args[Slot.NEW], c.args[Slot.OLD])
        for c in firsts
        if Slot.OLD in c.args and Slot.NEW in c.args
    ]
    if len(gaps) < 2 or gaps[0] > _STILL or min(gaps[1:]) < _MOVED or gaps[1] == float("inf"):
        return None
    return {"gaps": [round(g, 4) for g in gaps], "call": firsts[1],
            "line": _maker(recording, firsts[1], Slot.OLD)}  # fmt: skip


def _policy_moved(recording: Recording) -> bool:
    """Whether any log-prob of the same rows changed between two updates."""
    return any(
        gap(one.args.get(Slot.NEW), other.args.get(Slot.NEW)) > _MOVED
        for group in _groups(recording)
        for one, other in pairwise(group)
    )


def _moving_reference(recording: Recording) -> dict[str, Any] | None:
    """After the policy moved, the reference log-probs are still those of the policy."""
    later = [bursts[0] for r in recording.rollouts[1:] if (bursts := r.bursts())]
    later = [c for c in later if Slot.REF in c.args and Slot.NEW in c.args]
    if not later or not _policy_moved(recording):
        return None
    gaps = [gap(c.args[Slot.REF], c.args[Slot.NEW]) for c in later]
    if max(gaps) > _STILL:
        return None
    return {"call": later[0], "gap": gaps[0], "line": _maker(recording, later[0], Slot.REF)}


def _untrained(recording: Recording) -> dict[str, Any] | None:
    """The parameters behind the new log-probs are the same in every rollout."""
    thetas, pushed = [], False
    for rollout in recording.rollouts:
        for call in rollout.bursts():
            number = call.origin.get(Slot.NEW)
            if number is not None:
                thetas.append(recording.calls[number].keys.get(Slot.THETA))
            advantages = call.args.get(Slot.ADVANTAGES)
            pushed = pushed or (advantages is not None and gap(advantages, _zeros(advantages)) > 0)
    if len(thetas) < 3 or None in thetas or len(set(thetas)) > 1 or not pushed:
        return None
    return {"bursts": len(thetas)}


def _zeros(value: Any) -> Any:
    return [_zeros(item) for item in value] if isinstance(value, list) else 0.0


def _ascends(recording: Recording | None) -> dict[str, Any] | None:
    """At a tiny learning rate, the loss of the same rows rises from epoch to epoch."""
    if recording is None:
        return None
    pairs = [
        (one.result, other.result)
        for group in _groups(recording)
        for one, other in pairwise(group)
        if one.keys.get(Slot.OLD) == other.keys.get(Slot.OLD)
        and isinstance(one.result, float)
        and isinstance(other.result, float)
    ]
    moved = [(one, other) for one, other in pairs if abs(one - other) > 1e-9]
    if len(moved) < 2:
        return None
    rises = sum(other > one for one, other in moved)
    direction = "up" if rises == len(moved) else "down" if rises == 0 else "mixed"
    return {"direction": direction, "first": moved[0], "settings": recording.settings}


def _metric_eps(seen: LoopObservation) -> dict[str, Any] | None:
    """The metric is measured at another clip range than the loss uses."""
    for recording in filter(None, (seen.epochs, seen.default)):
        for rollout in recording.rollouts:
            losses, metrics = rollout.of(Role.LOSS), rollout.of(Role.CLIP_FRACTION)
            used = {c.args.get(Slot.CLIP) for c in losses} - {None}
            for call in metrics:
                measured = call.args.get(Slot.CLIP)
                if measured is not None and len(used) == 1 and measured not in used:
                    return {"measured": measured, "used": used.pop(), "call": call,
                            "settings": recording.settings}  # fmt: skip
    return None


def _frozen_metric(recording: Recording) -> Call | None:
    """At the defaults, the metric is only ever measured where new and old are equal."""
    calls = [c for c in recording.calls if c.role is Role.CLIP_FRACTION]
    pairs = [(c.args.get(Slot.NEW), c.args.get(Slot.OLD)) for c in calls]
    if len(calls) < 2 or any(None in pair or gap(*pair) > 1e-9 for pair in pairs):
        return None
    return calls[0]


def _odd_mask(recording: Recording) -> dict[str, Any] | None:
    """A loss is given a mask with a number below 0 or above 1."""
    for call in (c for c in recording.calls if c.role is Role.LOSS):
        numbers = list(_numbers(call.args.get(Slot.MASK)))
        odd = [x for x in numbers if not 0 <= x <= 1]
        if odd:
            return {"call": call, "values": numbers[:8], "odd": odd[0]}
    return None


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, list):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, int | float):
        yield float(value)


def _where(recorder: Recorder, facts: dict[str, Any]) -> dict[str, Place]:
    target = recorder.target
    where = {"function": definition(target), "update": _update_place(target)}
    for key, slot in (("refreshed", Slot.OLD), ("stale", Slot.OLD), ("moving_reference", Slot.REF)):
        if found := facts[key]:
            line = found["line"]
            made = _statement_at(target, line) if line else _assignment(recorder, slot)
            where[key] = made or _statement_at(target, found["call"].line)
    if facts["moving_reference"]:
        where["moving_reference"] = _reference_place(target, where["moving_reference"])
    for key in ("metric_eps", "frozen_metric", "odd_mask"):
        found = facts[key]
        call = found["call"] if isinstance(found, dict) else found
        if call:
            where[key] = _call_place(target, call.name, call.line)
    return where


def _assignment(recorder: Recorder, slot: Slot) -> Place | None:
    """Where the variable that is given to the loss for this part is assigned."""
    for loss in recorder.script.parts(Role.LOSS):
        for call in calls_in(recorder.target, loss.name):
            given = dict(zip((p.slot for p in loss.parameters), call.args, strict=False))
            names = {p.name: p.slot for p in loss.parameters}
            given |= {names.get(k.arg or ""): k.value for k in call.keywords}
            value = given.get(slot)
            name = value.id if isinstance(value, ast.Name) else None
            for node in ast.walk(recorder.target.node) if name else ():
                if isinstance(node, ast.Assign) and any(
                    isinstance(t, ast.Name) and t.id == name for t in node.targets
                ):
                    return place(recorder.target.name, node)
    return None


def _statement_at(target: Target, line: int) -> Place:
    """The smallest statement of the function that covers a line."""
    holders = [
        node
        for node in ast.walk(target.node)
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    simple = [n for n in holders if not isinstance(n, ast.For | ast.FunctionDef | ast.If)]
    best = min(simple, key=lambda n: (n.end_lineno or 0) - n.lineno, default=None)
    return place(target.name, best) if best else definition(target)


def _reference_place(target: Target, made: Place) -> Place:
    """Where the table that the reference log-probs are read from was assigned."""
    statement = next(
        (n for n in ast.walk(target.node) if isinstance(n, ast.stmt) and n.lineno == made.line),
        None,
    )
    names = [n.id for n in ast.walk(statement) if isinstance(n, ast.Name)] if statement else []
    for node in ast.walk(target.node):
        if isinstance(node, ast.Assign) and _is_same_memory(node.value):
            if any(isinstance(t, ast.Name) and t.id in names for t in node.targets):
                return place(target.name, node)
    return made


def _is_same_memory(node: ast.expr) -> bool:
    """`theta`, or what shares its numbers: `theta.data`, `theta.detach()`."""
    match node:
        case ast.Name() | ast.Attribute(value=ast.Name(), attr="data"):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(), attr="detach" | "view"), args=[]):
            return True
    return False


def _call_place(target: Target, name: str, line: int) -> Place:
    for node in calls_in(target, name):
        if node.lineno <= line <= (node.end_lineno or node.lineno):
            return place(target.name, node)
    return _statement_at(target, line)


def _update_place(target: Target) -> Place:
    """The last statement that looks like an update of the parameters."""
    updates = [n for n in ast.walk(target.node) if isinstance(n, ast.stmt) and _is_update(n)]
    last = max(updates, key=lambda n: n.lineno, default=None)
    return place(target.name, last) if last else definition(target)


def _is_update(node: ast.AST) -> bool:
    """An assignment into a table, an augmented one, or a call named like a step."""
    match node:
        case ast.AugAssign(op=ast.Sub() | ast.Add(), value=ast.BinOp()):
            return True
        case ast.Assign(targets=[ast.Subscript()], value=ast.ListComp()):
            return True
        case ast.Expr(value=ast.Call() as call):
            return bool({"step", "update", "descend"} & set(words(called(call))))
        case ast.Assign(value=value):
            return any(map(_is_scaled_change, ast.walk(value)))
    return False


def _is_scaled_change(node: ast.AST) -> bool:
    """`theta - lr * grad`, with the rate on either side of the product."""
    match node:
        case ast.BinOp(op=ast.Sub() | ast.Add(), right=ast.BinOp(op=ast.Mult()) as product):
            sides = (product.left, product.right)
            return any(isinstance(side, ast.Name) and side.id in _RATE for side in sides)
    return False
