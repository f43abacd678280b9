"""Repairs of the clip range: the one that is given is the one that is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.read.landmarks import CLIPPERS, called
from rlproof.read.names import Slot
from rlproof.read.parameters import number
from rlproof.repair.edits.model import Change, Edit
from rlproof.repair.edits.site import Site, bracketed
from rlproof.repair.edits.surrogate import picker

PUBLISHED = 0.2
"""The clip range of PPO and GRPO (arXiv 1707.06347, 2402.03300)."""


def _bounds(site: Site) -> tuple[str, str] | None:
    both = site.name_of(Slot.CLIP)
    low, high = site.name_of(Slot.CLIP_LOW) or both, site.name_of(Slot.CLIP_HIGH) or both
    return (low, high) if low and high else None


def used(site: Site) -> Iterator[Edit]:
    """The bounds made of the parameter instead of numbers; a clip where there is none."""
    names = _bounds(site)
    if names is None:
        return
    low, high = names
    for call in site.near(ast.Call):
        if called(call) in CLIPPERS and Slot.NEW in site.taint(call):
            ends = [a for a in [*call.args, *(k.value for k in call.keywords)] if not site.taint(a)]
            ends = [e for e in ends if not (isinstance(e, ast.Name) and e.id in site.imports)]
            if len(ends) == 2:
                changes = (site.put(ends[0], f"1 - {low}"), site.put(ends[1], f"1 + {high}"))
                yield Edit("clip by the range that is given", changes)
    yield from _literal_sides(site, low, high)
    for node in site.everywhere(ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id in names and site.alone(node):
                yield Edit("keep the range that is given", (site.drop(node),))
    yield from _clip_added(site, low, high)


def _literal_sides(site: Site, low: str, high: str) -> Iterator[Edit]:
    """`1 - 0.2` to `1 - clip_eps`, and bounds 0.8 and 1.2 of min and max."""
    changes = []
    for node in site.everywhere(ast.BinOp):
        if number(node.left) == 1 and number(node.right) is not None:
            if isinstance(node.op, ast.Sub):
                changes.append(site.put(node.right, low))
            elif isinstance(node.op, ast.Add):
                changes.append(site.put(node.right, high))
    if changes:
        yield Edit("clip by the range that is given", tuple(changes))
    for pair in site.everywhere(ast.Tuple):
        ends = [number(end) for end in pair.elts]
        if len(ends) == 2 and ends[0] and ends[1] and 0 < ends[0] < 1 < ends[1] < 2:
            text = f"1 - {low}, 1 + {high}"
            start, stop = site.span(pair.elts[0])[0], site.span(pair.elts[1])[1]
            yield Edit("clip by the range that is given", (Change(start, stop, text),))
    changes = []
    for call in site.everywhere(ast.Call):
        if called(call) in {"min", "max"} and Slot.NEW in site.taint(call):
            for argument in call.args:
                value = number(argument)
                if value is not None and 0 < value < 2 and value != 1:
                    text = f"1 - {low}" if value < 1 else f"1 + {high}"
                    changes.append(site.put(argument, text))
    if changes:
        yield Edit("clip by the range that is given", tuple(changes))


def _clip_added(site: Site, low: str, high: str) -> Iterator[Edit]:
    """`ratio * A` to `min(ratio * A, clip(ratio) * A)`, where nothing is clipped."""
    node = site.surrogate
    if not isinstance(node, ast.BinOp) or site.target is None:
        return
    for ratio, adv in ((node.left, node.right), (node.right, node.left)):
        if Slot.NEW in site.taint(ratio) and Slot.NEW not in site.taint(adv):
            one, factor = bracketed(site, ratio), bracketed(site, adv)
            bounds = f"1 - {low}, 1 + {high}"
            if site.arrays is None:
                clipped = f"min(max({one}, 1 - {low}), 1 + {high})"
            else:
                word = "clamp" if site.is_torch else "clip"
                clipped = f"{site.arrays}.{word}({site.source(ratio)}, {bounds})"
            text = f"{picker(site)}({one} * {factor}, {clipped} * {factor})"
            yield Edit("clip by the range that is given", (site.put(node, text),))


def ordered(site: Site) -> Iterator[Edit]:
    """The lower bound below and the upper bound above: swapped arguments, a doubled max."""
    label = "clip between the lower and the upper bound"
    for call in site.near(ast.Call):
        if called(call) in CLIPPERS:
            ends = [a for a in call.args[-2:] if _side(a)]
            if [_side(a) for a in ends] == ["min", "max"]:
                one, two = ends
                swapped = (site.put(one, site.source(two)), site.put(two, site.source(one)))
                yield Edit(label, swapped)
        inner = [a for a in call.args if isinstance(a, ast.Call) and called(a) in {"min", "max"}]
        if called(call) in {"min", "max"} and len(inner) == 1 and Slot.NEW in site.taint(call):
            renames = [_renamed(site, one) for one in (call, inner[0])]
            changes = [change for change in renames if change is not None]
            if changes:
                yield Edit(label, tuple(changes))
    yield from _other_side(site)


def _other_side(site: Site) -> Iterator[Edit]:
    """Two bounds on one side of 1, or the upper one named first: `lo, hi = 1 + e, 1 - e`."""
    label = "clip between the lower and the upper bound"
    for node in site.near(ast.expr):
        ends: list[ast.expr] = []
        if isinstance(node, ast.Tuple) and len(node.elts) == 2:
            ends = node.elts
        elif isinstance(node, ast.Call) and called(node) in CLIPPERS:
            ends = [*node.args, *(k.value for k in node.keywords)][-2:]
        if len(ends) != 2 or None in map(_side, ends):
            continue
        if [_side(end) for end in ends] == ["min", "max"]:
            one, two = ends
            swapped = (site.put(one, site.source(two)), site.put(two, site.source(one)))
            yield Edit(label, swapped)
        for end, old, new, wanted in zip(ends, "+-", "-+", ("max", "min"), strict=True):
            if isinstance(end, ast.BinOp) and _side(end) != wanted:
                change = site.operator(end, old, new)
                if change:
                    yield Edit(label, (change,))


def _side(bound: ast.expr) -> str | None:
    """`max` belongs to a lower bound 1 - eps, `min` to an upper one 1 + eps."""
    if isinstance(bound, ast.BinOp) and number(bound.left) == 1:
        return {ast.Sub: "max", ast.Add: "min"}.get(type(bound.op))
    return None


def _renamed(site: Site, call: ast.Call) -> Change | None:
    sides = [side for side in map(_side, call.args) if side]
    return site.put(call.func, sides[0]) if sides and sides[0] != called(call) else None


def possible(site: Site) -> Iterator[Edit]:
    """Impossible default: the published range, shown as a choice and never written."""
    for node in site.nodes(ast.Constant):
        value = number(node)
        if value is not None and value >= 1 and site.target is not None:
            own = any(p.default is node for p in site.target.parameters)
            why = (
                f"{PUBLISHED:g} is the range of PPO and GRPO; the script doesn't say what it means"
            )
            if own:
                yield Edit("a range below 1", (site.put(node, f"{PUBLISHED:g}"),), choice=why)


def capped(site: Site) -> Iterator[Edit]:
    """A dual clip behind the larger of two losses: min(loss, −A·c) where A < 0."""
    cap, advantages = site.name_of(Slot.CAP), site.name_of(Slot.ADVANTAGES)
    if cap is None or advantages is None or not site.is_torch:
        return
    for node in site.everywhere(ast.Assign):
        target, torch = node.targets[0], site.arrays
        larger = isinstance(node.value, ast.Call) and called(node.value) in {"max", "maximum"}
        if larger and isinstance(target, ast.Name) and site.alone(node):
            name = target.id
            line = (
                f"{name} = {torch}.where({advantages} < 0, "
                f"{torch}.min({name}, -{advantages} * {cap}), {name})"
            )
            stop = site.lines(node)[1]
            text = f"{site.indent(node)}{line}\n"
            yield Edit("use the cap that is given", (Change(stop, stop, text),))
