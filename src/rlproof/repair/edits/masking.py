"""Repairs of the mask: padding left out of loops and of sums, and counted nowhere.

Shapes: B rows, T slots.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.read.landmarks import called
from rlproof.read.names import Slot
from rlproof.repair.edits.loops import bindings
from rlproof.repair.edits.model import Change, Edit
from rlproof.repair.edits.site import Site, reductions

BOTH = frozenset({"MSK001", "MSK002"})


def left_out(site: Site) -> Iterator[Edit]:
    """Padding neither summed nor counted."""
    yield from _positive(site)
    yield from _below_length(site)
    yield from guard_first(site)
    yield from _skipped(site)
    yield from _filtered(site)
    yield from _averages(site)
    yield from _summands(site)


def _positive(site: Site) -> Iterator[Edit]:
    """`mask >= 0`, which is true of padding too, to `mask > 0`."""
    for node in site.everywhere(ast.Compare):
        if site.taint(node.left) == {Slot.MASK} and isinstance(node.ops[0], ast.GtE):
            start, stop = site.span(node.left)[1], site.span(node.comparators[0])[0]
            text = site.text[start:stop].replace(">=", ">")
            yield Edit("only real tokens", (Change(start, stop, text),), BOTH)


def _below_length(site: Site) -> Iterator[Edit]:
    """`arange(T) <= lengths`, which takes one slot more than there are tokens, to `<`."""
    for node in site.everywhere(ast.Compare):
        parts = [node.left, *node.comparators]
        if len(parts) != 2 or not isinstance(node.ops[0], ast.LtE | ast.GtE):
            continue
        bound = parts[1] if isinstance(node.ops[0], ast.LtE) else parts[0]
        if site.taint(bound) == {Slot.LENGTHS}:
            start, stop = site.span(parts[0])[1], site.span(parts[1])[0]
            text = site.text[start:stop].replace("<=", "<").replace(">=", ">")
            yield Edit("only as many slots as there are tokens", (Change(start, stop, text),), BOTH)


def guard_first(site: Site) -> Iterator[Edit]:
    """`if not keep: continue` to the head of its loop, before what is added up."""
    for loop in site.everywhere(ast.For):
        for place, step in enumerate(loop.body):
            match step:
                case ast.If(test=ast.UnaryOp(op=ast.Not()), body=[ast.Continue()], orelse=[]):
                    stored = {
                        n.id
                        for other in loop.body[:place]
                        for n in ast.walk(other)
                        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
                    }
                    used = {n.id for n in ast.walk(step.test) if isinstance(n, ast.Name)}
                    if place and not stored & used and site.alone(step):
                        start, stop = site.lines(step)
                        first = site.lines(loop.body[0])[0]
                        moved = Change(first, first, site.text[start:stop])
                        yield Edit("skip padding first", (moved, site.drop(step)))


def _loop(site: Site) -> ast.For | None:
    """The innermost loop that the surrogate is computed in."""
    loops = site.flow.loops.get(site.surrogate, ()) if site.surrogate else ()
    inner = loops[-1] if loops else None
    return inner if isinstance(inner, ast.For) else None


def _skipped(site: Site) -> Iterator[Edit]:
    """`if not mask[i][t]: continue` at the head of the loop over slots."""
    loop = _loop(site)
    if loop is None or not site.alone(loop.body[0]):
        return
    element, changes = _element(site, loop)
    if element is None:
        return
    step = site.step(loop.body, loop)
    lines = site.before(loop.body[0], f"if not {element}:", f"{step}continue")
    yield Edit("skip padding", (*changes, lines), BOTH)


def _element(site: Site, loop: ast.For) -> tuple[str | None, tuple[Change, ...]]:
    """The mask's entry in this loop, and what must change so that it is at hand."""
    for target, source in bindings(loop):
        if isinstance(target, ast.Name) and site.taint(source) == {Slot.MASK}:
            return target.id, ()
    indexed = _indexed(site, loop) or _counted_off(site, loop)
    return (indexed, ()) if indexed else _zipped(site, loop)


def _counted_off(site: Site, loop: ast.For) -> str | None:
    """`real[t]` or `mask[i][t]`, where the loops count rows and slots."""
    slot, row = _counter_of(loop), _row_of_mask(site, loop)
    if slot is None or row is not None:
        return f"{row}[{slot}]" if slot else None
    counters = [c for outer in _around(site, loop)[:1] if (c := _counter_of(outer))]
    return f"{site.name_of(Slot.MASK)}[{counters[0]}][{slot}]" if counters else None


def _counter_of(loop: ast.For) -> str | None:
    """The variable that counts the rounds of a loop over `range` or `enumerate`."""
    match loop.target, loop.iter:
        case ast.Name(id=name), ast.Call(func=ast.Name(id="range")):
            return name
        case ast.Tuple(elts=[ast.Name(id=name), _]), ast.Call(func=ast.Name(id="enumerate")):
            return name
    return None


def _indexed(site: Site, loop: ast.For) -> str | None:
    """`mask[i][t]` from `new[i][t]`, or `real[t]` where `real` is the mask's row."""
    for node in ast.walk(loop):
        if not isinstance(node, ast.Subscript) or Slot.NEW not in site.taint(node):
            continue
        if any(isinstance(inner, ast.Slice) for inner in ast.walk(node.slice)):
            continue
        root, indices = _root(site, node)
        rows = _row_of_mask(site, loop)
        if len(indices) == 1 and rows and isinstance(root, ast.Name):
            return f"{rows}{indices[0]}"
        if isinstance(root, ast.Name) and root.id == site.name_of(Slot.NEW):
            return f"{site.name_of(Slot.MASK)}{''.join(indices)}" if len(indices) == 2 else None
    return None


def _root(site: Site, node: ast.expr) -> tuple[ast.expr, list[str]]:
    indices: list[str] = []
    while isinstance(node, ast.Subscript):
        indices.insert(0, f"[{site.source(node.slice)}]")
        node = node.value
    return node, indices


def _row_of_mask(site: Site, loop: ast.For) -> str | None:
    """A variable of a loop around this one that holds a row of the mask."""
    for outer in _around(site, loop):
        for target, source in bindings(outer):
            if isinstance(target, ast.Name) and site.taint(source) == {Slot.MASK}:
                return target.id
    return None


def _around(site: Site, loop: ast.For) -> list[ast.For]:
    return [
        node
        for node in site.everywhere(ast.For)
        if isinstance(node, ast.For) and node is not loop and any(n is loop for n in ast.walk(node))
    ]


def _zipped(site: Site, loop: ast.For) -> tuple[str | None, tuple[Change, ...]]:
    """Add the mask to `zip` where the loop walks over the log-probs by it."""
    mask = site.name_of(Slot.MASK)
    walk, target = loop.iter, loop.target
    zips = isinstance(walk, ast.Call) and called(walk) == "zip" and isinstance(target, ast.Tuple)
    if mask is None or not zips or not isinstance(walk, ast.Call) or not walk.args:
        return None, ()
    assert isinstance(target, ast.Tuple)
    source = next((a for a in walk.args if site.taint(a) == {Slot.NEW}), None)
    row, changes = _row_source(site, loop, source, mask)
    if row is None:
        return None, ()
    used = {n.id for n in site.everywhere(ast.Name)}
    name = next(n for n in ("real", "m", "is_real", "keep_token") if n not in used)
    end = site.span(target.elts[-1])[1]
    last = site.span(walk.args[-1])[1]
    return name, (*changes, Change(end, end, f", {name}"), Change(last, last, f", {row}"))


def _row_source(
    site: Site, loop: ast.For, source: ast.expr | None, mask: str
) -> tuple[str | None, tuple[Change, ...]]:
    """A row of the mask: `mask[i]` from `new[i]`, or one more variable of the loop around."""
    if isinstance(source, ast.Subscript):
        root, indices = _root(site, source)
        if isinstance(root, ast.Name) and root.id == site.name_of(Slot.NEW):
            return f"{mask}{''.join(indices)}", ()
    if isinstance(source, ast.Name):
        known = _row_of_mask(site, loop)
        if known:
            return known, ()
        for outer in _around(site, loop):
            walk, target = outer.iter, outer.target
            if (
                isinstance(walk, ast.Call)
                and called(walk) == "zip"
                and isinstance(target, ast.Tuple)
                and any(isinstance(t, ast.Name) and t.id == source.id for t in target.elts)
            ):
                end, last = site.span(target.elts[-1])[1], site.span(walk.args[-1])[1]
                name = f"{mask}_row"
                return name, (Change(end, end, f", {name}"), Change(last, last, f", {mask}"))
    return None, ()


def _filtered(site: Site) -> Iterator[Edit]:
    """`… if real` at the end of a comprehension over slots."""
    for node in site.everywhere(ast.expr):
        if not isinstance(node, ast.ListComp | ast.GeneratorExp):
            continue
        generator = node.generators[-1]
        if not {Slot.NEW} <= site.taint(node.elt) or generator.ifs:
            continue
        for target, source in bindings(generator):
            if isinstance(target, ast.Name) and site.taint(source) == {Slot.MASK}:
                stop = site.span(generator.iter)[1]
                yield Edit("skip padding", (Change(stop, stop, f" if {target.id}"),), BOTH)


def _averages(site: Site) -> Iterator[Edit]:
    """`x.mean()` to `(x * mask).sum() / mask.sum()`, for every mean over slots at once."""
    mask = _mask(site)
    if mask is None:
        return
    for covers, wanted in ((BOTH, False), (BOTH, True)):
        changes: list[Change] = []
        for call, inner in reductions(site):
            taint = site.taint(inner)
            if called(call) == "mean" and Slot.NEW in taint and not _of_reduced(site, inner):
                weighed = Slot.MASK in taint
                changes += _average(site, call, inner, mask, weigh=wanted or not weighed)
        if changes:
            yield Edit("average over real tokens", tuple(changes), covers)


def _of_reduced(site: Site, inner: ast.expr) -> bool:
    """Whether rows were reduced before: this reduction is over rows then."""
    parts = list(ast.walk(inner))
    for part in ast.walk(inner):
        if isinstance(part, ast.Name) and (value := site.definition_of(part.id)) is not None:
            parts += ast.walk(value)
    return any(isinstance(p, ast.Call) and called(p) in {"sum", "mean"} and (p.args or p.keywords)
               and Slot.NEW in site.taint(p) and Slot.ADVANTAGES in site.taint(p)
               for p in parts if p is not inner or not isinstance(inner, ast.Name))  # fmt: skip


def _average(
    site: Site, call: ast.Call, inner: ast.expr, mask: str, *, weigh: bool
) -> Iterator[Change]:
    arguments = _arguments(site, call, inner)
    yield from _weighed(site, call, inner, mask) if weigh else ()
    start = site.span(call.func)[1] - len("mean")
    yield Change(start, start + len("mean"), "sum")
    first, stop = site.span(call)
    opening, closing = ("(", ")") if _binds_tighter(site, first, stop) else ("", "")
    if opening:
        yield Change(first, first, opening, stop - first + 1)
    yield Change(stop, stop, f" / {mask}.sum({arguments}){closing}", -1)


def _binds_tighter(site: Site, start: int, stop: int) -> bool:
    """Whether what stands around a call would take a part of `x / y` in its place."""
    before = site.text[:start].rstrip()[-1:]
    return site.text[stop : stop + 1] in {".", "["} or before in {"/", "%"}


def _arguments(site: Site, call: ast.Call, inner: ast.expr) -> str:
    given = [a for a in call.args if a is not inner]
    words = [f"{k.arg}={site.source(k.value)}" for k in call.keywords if k.arg]
    return ", ".join([*(site.source(a) for a in given), *words])


def _weighed(site: Site, call: ast.Call, inner: ast.expr, mask: str) -> Iterator[Change]:
    """Multiply by the mask what a reduction adds up."""
    start, stop = site.span(inner)
    outside = site.span(call.func)[0] < start and site.text[site.span(call.func)[0]] == "("
    method = inner is getattr(call.func, "value", None)
    tight = isinstance(inner, ast.Name | ast.Call | ast.Subscript | ast.Attribute)
    if method and outside:  # `(a + b).mean()`: the brackets are there
        before, after = ("", f" * {mask}") if _is_product(inner) else ("(", f") * {mask}")
    elif method or not (tight or _is_product(inner)):
        before, after = ("(", f" * {mask})") if tight else ("(", f") * {mask}")
    else:
        before, after = "", f" * {mask}"
    if before:
        yield Change(start, start, before, stop - start)
    yield Change(stop, stop, after, start - stop)


def _is_product(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)


def _summands(site: Site) -> Iterator[Edit]:
    """`x.sum()` to `(x * mask).sum()`."""
    mask = _mask(site)
    if mask is None:
        return
    changes: list[Change] = []
    for call, inner in reductions(site):
        taint = site.taint(inner)
        if called(call) == "sum" and Slot.NEW in taint and Slot.MASK not in taint:
            if not _of_reduced(site, inner):
                changes += _weighed(site, call, inner, mask)
    if changes:
        yield Edit("leave padding out of the sum", tuple(changes), frozenset({"MSK001"}))


def _mask(site: Site) -> str | None:
    """The mask as an array: a local name made of nothing else, or the parameter."""
    name = site.name_of(Slot.MASK)
    if name is None:
        return None
    for node in site.everywhere(ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name) and site.taint(node.value) == {Slot.MASK}:
                shaped = any(
                    isinstance(n, ast.Call) and called(n) in {"sum", "mean", "any", "nonzero"}
                    for n in ast.walk(node.value)
                )
                if not shaped:
                    return target.id
    return name


def counted(site: Site) -> Iterator[Edit]:
    """Only real tokens in the denominator."""
    mask = _mask(site)
    if mask is None:
        return
    yield from _counter(site)
    only = frozenset({"MSK002"})
    for node in [
        *site.nodes(ast.Call),
        *site.everywhere(ast.Call),
        *site.everywhere(ast.Attribute),
    ]:
        if isinstance(node, ast.Attribute) and node.attr == "size" and not _is_called(site, node):
            yield Edit("count real tokens", (site.put(node, f"{mask}.sum()"),), only)
        if isinstance(node, ast.Call) and called(node) == "numel":
            yield Edit("count real tokens", (site.put(node, f"{mask}.sum()"),), only)
        if isinstance(node, ast.Call) and called(node) == "len" and _in_divisor(site, node):
            text = f"{mask}.sum()" if site.arrays else f"sum({site.source(node.args[0])})"
            yield Edit("count real tokens", (site.put(node, text),), only)
    yield from left_out(site)


def _is_called(site: Site, node: ast.Attribute) -> bool:
    return any(isinstance(c, ast.Call) and c.func is node for c in site.everywhere(ast.Call))


def _in_divisor(site: Site, node: ast.expr) -> bool:
    return any(
        isinstance(b, ast.BinOp)
        and isinstance(b.op, ast.Div)
        and any(n is node for n in ast.walk(b.right))
        for b in site.everywhere(ast.BinOp)
    )


def _counter(site: Site) -> Iterator[Edit]:
    """`count += 1` to `count += real`; `count += len(row)` to `count += sum(mask[i])`."""
    loop = _loop(site)
    mask = site.name_of(Slot.MASK)
    for node in site.everywhere(ast.AugAssign):
        if isinstance(node.value, ast.Constant) and node.value.value == 1 and loop is not None:
            element, changes = _element(site, loop)
            if element is not None and not changes:
                yield Edit("count real tokens", (site.put(node.value, element),),
                           frozenset({"MSK002"}))  # fmt: skip
        if isinstance(node.value, ast.Call) and called(node.value) == "len" and node.value.args:
            walked = node.value.args[0]
            root, indices = _root(site, walked)
            row = f"{mask}{''.join(indices)}" if indices else None
            row = site.source(walked) if site.taint(walked) == {Slot.MASK} else row
            if row and isinstance(root, ast.Name):
                yield Edit("count real tokens", (site.put(node.value, f"sum({row})"),),
                           frozenset({"MSK002"}))  # fmt: skip


def same_mask(site: Site) -> Iterator[Edit]:
    """The divisor counts what the numerator adds up."""
    masks = [p.name for p in site.target.parameters if p.slot is Slot.MASK] if site.target else []
    products = [
        node
        for node in site.everywhere(ast.BinOp)
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Mult | ast.BitAnd)
        and {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} <= set(masks)
    ]
    for call, inner in reductions(site):
        if isinstance(inner, ast.Name) and inner.id in masks and _in_divisor(site, call):
            for product in products:
                text = f"({site.source(product)})"
                yield Edit("count what is added up", (site.put(inner, text),))
            for name in masks:
                if name != inner.id:
                    yield Edit("count what is added up", (site.put(inner, name),))
    yield from _joined(site)
    for node in site.everywhere(ast.BinOp):
        if isinstance(node.op, ast.Mult) and isinstance(node.right, ast.Name):
            for name in masks:
                if (
                    node.right.id in masks
                    and node.right.id != name
                    and Slot.NEW in site.taint(node)
                ):
                    yield Edit("use one mask", (site.put(node.right, name),))


def _joined(site: Site) -> Iterator[Edit]:
    """The divisor counts the mask that others were joined to: `kept = keep & other`."""
    joined = [
        target.id
        for node in site.everywhere(ast.Assign)
        if isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.Mult | ast.BitAnd)
        and Slot.MASK in site.taint(node.value) and Slot.NEW not in site.taint(node.value)
        for target in node.targets if isinstance(target, ast.Name)
    ]  # fmt: skip
    for call, inner in reductions(site):
        if isinstance(inner, ast.Name) and _in_divisor(site, call):
            for name in joined:
                yield Edit("count what is added up", (site.put(inner, name),))


def given(site: Site) -> Iterator[Edit]:
    """The call gets the mask where it was given something else."""
    from rlproof.read.names import objective_slot

    losses = {t.name: t for t in site.script.targets}
    stored = {n.id for n in site.everywhere(ast.Name)
              if isinstance(n.ctx, ast.Store)}  # fmt: skip
    names = [n for n in sorted(stored) if objective_slot(n) is Slot.MASK]
    for call in site.nodes(ast.Call):
        target = losses.get(called(call))
        if target is None:
            continue
        slots = {p.name: p.slot for p in target.parameters}
        pairs = [*zip(slots.values(), call.args, strict=False)]
        pairs += [(slots.get(k.arg or ""), k.value) for k in call.keywords]
        for slot, argument in pairs:
            if slot is Slot.MASK:
                for name in names:
                    if site.source(argument) != name:
                        yield Edit("give it the mask", (site.put(argument, name),))


def filled_first(site: Site) -> Iterator[Edit]:
    """`new - old` to `where(mask, new - old, 0)`: what padding holds meets no arithmetic.

    The gradient stays finite as well: a choice after `exp` would leave 0 · inf in it.
    """
    mask, arrays = site.name_of(Slot.MASK), site.arrays
    if mask is None or arrays is None:
        return
    test = f"{mask}.bool()" if site.is_torch else mask
    changes: list[Change] = []
    for node in site.everywhere(ast.BinOp):
        sides = [site.taint(node.left), site.taint(node.right)]
        alone = all(len(side) == 1 and side <= _POLICIES for side in sides)
        if isinstance(node.op, ast.Sub) and alone and {Slot.NEW} in sides:
            text = site.source(node)
            text = text if "#" in text else " ".join(text.split())
            changes.append(site.put_simple(node, f"{arrays}.where({test}, {text}, 0.0)"))
    if changes:
        yield Edit("fill padded slots before any arithmetic", tuple(changes))


_POLICIES = {Slot.NEW, Slot.OLD, Slot.REF}


def one_window(site: Site) -> Iterator[Edit]:
    """`mask[:, :-1]` to `mask[:, 1:]`, the tokens that the log-probs are of."""
    for node in site.everywhere(ast.Subscript):
        if ast.unparse(node.slice).strip("()") == ":, :-1" and Slot.MASK in site.taint(node.value):
            text = f"{site.source(node.value)}[:, 1:]"
            yield Edit("cut the mask as the rest of the loss does", (site.put(node, text),))
