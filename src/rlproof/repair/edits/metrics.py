"""Repairs of metrics: the clip range in use, the mask, the sign of an entropy."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.read.landmarks import CLIPPERS, called
from rlproof.read.names import Slot
from rlproof.read.targets import Role
from rlproof.repair.edits.denominators import at_least_one
from rlproof.repair.edits.loops import bindings
from rlproof.repair.edits.masking import left_out
from rlproof.repair.edits.model import Change, Edit
from rlproof.repair.edits.site import Site, is_simple, reductions


def clip_range_given(site: Site) -> Iterator[Edit]:
    """Give the metric the clip range that the loss is given."""
    metric = next(iter(site.script.parts(Role.CLIP_FRACTION)), None)
    clip = metric.parameter(Slot.CLIP) if metric else None
    if metric is None or clip is None or site.function is None:
        return
    default = site.source(clip.default) if clip.default is not None else "0.2"
    arguments = site.function.args
    own = {arg.arg for arg in [*arguments.args, *arguments.kwonlyargs]}
    values = [clip.name] if clip.name in own else []
    if arguments.kwarg:
        values.append(f'{arguments.kwarg.arg}.get("{clip.name}", {default})')
    for call in site.near(ast.Call):
        if called(call) != metric.name:
            continue
        known = next((k for k in call.keywords if k.arg == clip.name), None)
        for value in values + _given_to_loss(site):
            stop = site.span(call)[1] - 1
            change = Change(stop, stop, f", {clip.name}={value}")
            if known is not None:
                change = site.put(known.value, value)
            yield Edit("measure at the clip range in use", (change,))


def _given_to_loss(site: Site) -> list[str]:
    """What the calls of a loss in this function give as clip range."""
    found = []
    for loss in site.script.of(Role.LOSS):
        clip = loss.parameter(Slot.CLIP)
        for call in site.everywhere(ast.Call):
            if clip is not None and called(call) == loss.name:
                found += [site.source(k.value) for k in call.keywords if k.arg == clip.name]
    return found


def over_mask(site: Site) -> Iterator[Edit]:
    """A mean over real tokens only."""
    mask = site.name_of(Slot.MASK)
    if mask is None:
        return
    yield from left_out(site)
    for call, inner in reductions(site):
        if called(call) == "mean" and Slot.MASK in site.taint(inner):
            stop = site.span(call.func)[1]
            count = at_least_one(site, f"{mask}.sum()")
            whole = site.source(call)[: stop - len("mean") - site.span(call)[0]]
            text = f"{whole}sum{site.text[stop : site.span(call)[1]]} / {count}"
            yield Edit("average over real tokens", (site.put(call, text),))
    yield from _entries(site, mask)
    for call, inner in reductions(site):
        if called(call) == "mean" and Slot.MASK not in site.taint(inner):
            text = f"({site.source(inner)} * {mask}).sum() / {mask}.sum()"
            yield Edit("average over real tokens", (site.put(call, text),))


def _entries(site: Site, mask: str) -> Iterator[Edit]:
    """`sum(len(row) for row in mask)` to `sum(sum(row) for row in mask)`; `seen += 1` likewise."""
    for node in site.everywhere(ast.GeneratorExp):
        walk = node.generators[0]
        match node.elt:
            case ast.Call(func=ast.Name(id="len") as name, args=[ast.Name()]):
                if site.source(walk.iter) == mask:
                    yield Edit("count real tokens", (site.put(name, "sum"),))
    for loop in site.everywhere(ast.For):
        for target, source in bindings(loop):
            if isinstance(target, ast.Name) and site.taint(source) == {Slot.MASK}:
                for step in loop.body:
                    match step:
                        case ast.AugAssign(value=ast.Constant(value=1 | 1.0) as one):
                            yield Edit("count real tokens", (site.put(one, target.id),))


def minus(site: Site) -> Iterator[Edit]:
    """A minus before the sum of p·log p."""
    for call, inner in reductions(site):
        taint = site.taint(inner)
        if called(call) == "sum" and Slot.MASK not in taint and taint & {Slot.LOGITS, Slot.NEW}:
            product = any(
                isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult) for n in ast.walk(inner)
            )
            if product:
                start = site.span(call)[0]
                yield Edit("an entropy is −Σ p·log p", (Change(start, start, "-"),))
    for node in site.everywhere(ast.Return):
        value = getattr(node, "value", None)
        if isinstance(value, ast.expr):
            before, after = site.wrap(value, "-(", ")")
            yield Edit("an entropy is −Σ p·log p", (Change(before.start, before.start, "-"),)
                       if is_simple(value) else (before, after))  # fmt: skip


def both_sides(site: Site) -> Iterator[Edit]:
    """Ratios below the range count too: `ratio > 1 + eps` to `abs(ratio - 1) > eps`."""
    clip = site.name_of(Slot.CLIP)
    for node in site.everywhere(ast.Compare):
        bound = node.comparators[0]
        if clip is None or len(node.ops) != 1:
            continue
        signed = isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Sub)
        if signed and Slot.NEW in site.taint(node.left) and not isinstance(bound, ast.BinOp):
            absolute = "abs" if site.arrays is None else f"{site.arrays}.abs"
            yield Edit("count both sides", site.wrap(node.left, f"{absolute}(", ")"))
        if Slot.NEW in site.taint(node.left) and isinstance(bound, ast.BinOp):
            absolute = "abs" if site.arrays is None else f"{site.arrays}.abs"
            text = f"{absolute}({site.source(node.left)} - 1) > {clip}"
            yield Edit("count both sides", (site.put(node, text),))


def own_range(site: Site) -> Iterator[Edit]:
    """A metric that has the parameter and compares with a number."""
    clip = site.name_of(Slot.CLIP)
    for node in site.everywhere(ast.Compare):
        for end in node.comparators:
            if clip and isinstance(end, ast.Constant) and Slot.NEW in site.taint(node.left):
                yield Edit("compare with the range that is given", (site.put(end, clip),))
    for call in site.everywhere(ast.Call):
        if called(call) in CLIPPERS and clip:
            return


def masked_fraction(site: Site) -> Iterator[Edit]:
    """The clip fraction's own faults: mask, range, one side only."""
    yield from clip_range_given(site)
    if site.target is not None and site.target.role is Role.CLIP_FRACTION:
        yield from both_sides(site)
        yield from own_range(site)
        yield from over_mask(site)


def unclipped(site: Site) -> Iterator[Edit]:
    """`clip(ratio, low, high)` to `ratio`, in what is tested against the same range."""
    for call in site.near(ast.Call):
        if called(call) in CLIPPERS:
            own = call.func.value if isinstance(call.func, ast.Attribute) else None
            module = isinstance(own, ast.Name) and own.id in site.imports
            inner = call.args[0] if call.args and (module or own is None) else own
            if isinstance(inner, ast.expr):
                yield Edit("test the ratio as it is", (site.put(call, site.source(inner)),))
