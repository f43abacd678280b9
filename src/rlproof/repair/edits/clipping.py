"""Repairs of the clip range: the one that is given is the one that is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.read.landmarks import CLIPPERS, called
from rlproof.read.names import Slot, words
from rlproof.read.parameters import number
from rlproof.read.targets import Role, Target
from rlproof.read.terms import lower_defaults
from rlproof.repair.edits.model import Change, Edit
from rlproof.repair.edits.site import Site, bracketed
from rlproof.repair.edits.surrogate import picker

PUBLISHED = 0.2
"""The clip range of PPO, GRPO and DAPO's lower one (arXiv 1707.06347, 2402.03300, 2503.14476)."""
_SUMS = {"sum", "mean", "average"}
_WHY = (
    f"{PUBLISHED:g} is the range of PPO and GRPO and the lower one of DAPO; the script doesn't say "
    "which is meant"
)
_OF_ROWS = (
    f"{PUBLISHED:g} is the range of PPO and GRPO, GSPO's of ratios of rows is 3e-4; the script "
    "doesn't say what it means"
)


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


def own_ranges(site: Site) -> Iterator[Edit]:
    """`1 + eps_low` to `1 + eps_high` and `1 - eps_high` to `1 - eps_low`, where both are given."""
    low, high = site.name_of(Slot.CLIP_LOW), site.name_of(Slot.CLIP_HIGH)
    if not low or not high:
        return
    signs = {(ast.Add, low): high, (ast.Sub, high): low}
    changes = []
    for node in site.everywhere(ast.BinOp):
        name = node.right.id if isinstance(node.right, ast.Name) else ""
        if number(node.left) == 1 and (right := signs.get((type(node.op), name))):
            changes.append(site.put(node.right, right))
    if changes:
        yield Edit("make each bound of its own range", tuple(changes))


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
    """An impossible default to the published range; one that is computed from a cap likewise."""
    place, own = site.finding.place, site.target.parameters if site.target else ()
    for node in ast.walk(site.script.source.tree):
        if not isinstance(node, ast.Constant) or not place.line <= node.lineno <= place.end_line:
            continue
        value = number(node)
        written = node.col_offset == place.col or any(p.default is node for p in own)
        if value is not None and value >= 1 and written:
            yield _published(site, (site.put(node, f"{PUBLISHED:g}"),), _users(site, node))
    for node in _mirrored(site):
        users = [site.target] if site.target else []
        yield _published(site, (site.put_simple(node, f"{PUBLISHED:g}"),), users)


def _users(site: Site, node: ast.expr) -> list[Target]:
    """The losses whose lower range has its default there."""
    losses = site.script.of(Role.LOSS)
    return [t for t in losses if any(s.node is node for s in lower_defaults(site.script, t))]


def _mirrored(site: Site) -> Iterator[ast.expr]:
    """`1 - cap` where a range belongs, which is subtracted from 1 once more: the cap itself."""
    subtracted = [n.right for n in site.everywhere(ast.BinOp)
                  if isinstance(n.op, ast.Sub) and number(n.left) == 1]  # fmt: skip
    names = {node.id for node in subtracted if isinstance(node, ast.Name)}
    yield from filter(_is_mirror, subtracted)
    for given in site.everywhere(ast.Assign):
        target, value = given.targets[0], given.value
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(target.elts, value.elts, strict=False))
        for one, other in pairs:
            if isinstance(one, ast.Name) and one.id in names and _is_mirror(other):
                yield other


def _is_mirror(node: ast.expr) -> bool:
    """`1 - x`."""
    match node:
        case ast.BinOp(left=left, op=ast.Sub(), right=ast.Name() | ast.Attribute()):
            return number(left) == 1
    return False


def _published(site: Site, changes: tuple[Change, ...], users: list[Target]) -> Edit:
    """The published range where ratios are those of tokens; for whole rows there are others."""
    label = f"a lower range of {PUBLISHED:g}"
    if any(_is_of_rows(site.at(target)) for target in users):
        return Edit(label, changes, choice=_OF_ROWS)
    return Edit(label, changes, chosen=_WHY)


def _is_of_rows(site: Site) -> bool:
    """Whether log-ratios are added up before they are exponents: a ratio of whole rows."""
    for power in site.everywhere(ast.Call):
        if called(power) != "exp" or not {Slot.NEW, Slot.OLD} <= site.taint(power):
            continue
        parts = list(ast.walk(power))
        for name in [n for n in parts if isinstance(n, ast.Name)]:
            parts += ast.walk(given) if (given := site.definition_of(name.id)) else ()
        sums = (n for n in parts if isinstance(n, ast.Call) and set(words(called(n))) & _SUMS)
        if any(Slot.NEW in site.taint(call) for call in sums):
            return True
    return False


def capped(site: Site) -> Iterator[Edit]:
    """A cap that nothing reads: the dual clip behind the choice between the two terms."""
    cap = site.name_of(Slot.CAP)
    arrays = site.arrays
    for node in site.near(ast.Assign) if cap and arrays else ():
        value, target = node.value, node.targets[0]
        if not (isinstance(value, ast.Call) and isinstance(target, ast.Name) and site.alone(node)):
            continue
        name, picks = target.id, called(value)
        advantages = [
            n.id
            for n in site.everywhere(ast.Name)
            if n.lineno < node.lineno and site.taint(n) == {Slot.ADVANTAGES}
        ]
        if picks not in {"max", "maximum", "min", "minimum"} or not advantages:
            continue
        adv, small = advantages[-1], picks.startswith("min")
        limit = f"{adv} * {cap}" if small else f"-{adv} * {cap}"
        other = {"max": "min", "maximum": "minimum", "min": "max", "minimum": "maximum"}[picks]
        text = f"{arrays}.where({adv} < 0, {arrays}.{other}({name}, {limit}), {name})"
        stop = site.span(node)[1]
        line = f"\n{site.indent(node)}{name} = {text}"
        yield Edit("cap the terms of bad actions", (Change(stop, stop, line),))
