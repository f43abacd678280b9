"""Repairs of batches that are put together from micro-batches: one divisor for all of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.read.landmarks import called
from rlproof.read.names import Slot, objective_slot, words
from rlproof.repair.edits.model import Change, Edit
from rlproof.repair.edits.site import Site, bracketed

_COUNTS = {
    "accumulation", "accum", "accumulate", "steps", "num", "micro", "batches", "count", "n",
    "world", "size", "minibatches", "chunks", "len",
}  # fmt: skip
_LABEL = "divide by the tokens of the whole batch"


def by_tokens_of_batch(site: Site) -> Iterator[Edit]:
    """`masked_mean(x, m)` and `(x * m).sum() / m.sum()` to `(x * m).sum() / total`.

    The total is that of what the mask of the micro-batch is a part of. Factors that average over
    micro-batches go: the divisor has taken their place.
    """
    for mean, summed, mask in _means(site):
        total = _total(site, mask)
        if total is None:
            continue
        text = f"{summed} / {total}"
        changes = [site.put(mean, text), *_factors(site, mean)]
        yield Edit(_LABEL, tuple(changes))


def _means(site: Site) -> Iterator[tuple[ast.expr, str, ast.expr]]:
    """Each mean over a mask: the expression, its sum as text, and the mask."""
    for node in site.near(ast.expr):
        match node:
            case ast.Call(func=ast.Name(), args=[values, mask], keywords=[]):
                if _is_mask(mask) and called(node) in site.functions:
                    yield node, f"({bracketed(site, values)} * {site.source(mask)}).sum()", mask
            case ast.BinOp(op=ast.Div(), left=ast.Call() as top, right=below):
                if called(top) == "sum" and (found := _summed(below)):
                    yield node, site.source(top), found


def _summed(node: ast.expr) -> ast.expr | None:
    """`mask` of `mask.sum()`, `mask.sum().clamp(min=1)`, `max(mask[rows].sum(), 1)`."""
    for inner in ast.walk(node):
        match inner:
            case ast.Call(func=ast.Attribute(value=value, attr="sum"), args=[]):
                if _is_mask(value):
                    return value
    return None


def _is_mask(node: ast.expr) -> bool:
    """A mask by its name, or rows of one."""
    match node:
        case ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name)):
            return objective_slot(name) is Slot.MASK
    return False


def _total(site: Site, mask: ast.expr) -> str | None:
    """The sum of what a mask is cut out of: a name that has it, or the expression."""
    value = _value_of(site, mask.id) if isinstance(mask, ast.Name) else mask
    if not isinstance(value, ast.Subscript) or _is_key(value):
        return None
    whole = f"{site.source(value.value)}.sum()"
    for node in site.everywhere(ast.Assign):
        target = node.targets[0]
        if isinstance(target, ast.Name) and site.source(node.value) == whole:
            return target.id
    return whole


def _is_key(node: ast.Subscript) -> bool:
    return isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)


def _value_of(site: Site, name: str) -> ast.expr | None:
    """What a name is given, in a tuple as well, where that happens once."""
    found: list[ast.expr] = []
    for node in site.everywhere(ast.Assign):
        for target in node.targets:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=False))
            found += [v for t, v in pairs if isinstance(t, ast.Name) and t.id == name]
    return found[0] if len(found) == 1 else None


def _factors(site: Site, mean: ast.expr) -> Iterator[Change]:
    """Divisions by numbers of micro-batches and weights by rows, of the mean or of its name."""
    names = {site.source(mean)}
    for node in site.everywhere(ast.Assign):
        inside = node.value is mean or any(
            _base(part) is mean for part in ast.walk(node.value) if isinstance(part, ast.BinOp)
        )
        target = node.targets[0]
        if isinstance(target, ast.Name) and (inside or node.value is mean):
            names.add(target.id)
    for part in site.everywhere(ast.BinOp):
        base = _base(part)
        if base is not None and (base is mean or site.source(base) in names):
            start, stop = site.span(base)[1], site.span(part)[1]
            first = site.span(part)[0]
            yield Change(start, stop, "")
            if first != site.span(base)[0]:
                yield Change(first, site.span(base)[0], "")
    for change in site.everywhere(ast.AugAssign):
        scales = isinstance(change.op, ast.Div | ast.Mult) and _counts(change.value)
        if scales and isinstance(change.target, ast.Name) and change.target.id in names:
            yield site.drop(change)


def _base(node: ast.BinOp) -> ast.expr | None:
    """`x` of `x / n`, `x * (rows / count)`."""
    if isinstance(node.op, ast.Div) and _counts(node.right):
        return node.left
    shares = isinstance(node.right, ast.BinOp) and isinstance(node.right.op, ast.Div)
    if isinstance(node.op, ast.Mult) and shares and _counts(node.right):
        return node.left
    return None


def _counts(node: ast.expr) -> bool:
    """Whether an expression is made of counts of rows or micro-batches alone."""
    names = [n for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute)]
    said = {w for n in names for w in words(n.id if isinstance(n, ast.Name) else n.attr)}
    sums = any(isinstance(n, ast.Call) and called(n) not in {"len", "float", "int"}
               for n in ast.walk(node))  # fmt: skip
    return bool(said & _COUNTS) and not sums
