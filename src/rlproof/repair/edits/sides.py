"""Repairs of a clip fraction that is told the advantages and counts without them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from rlproof.read.landmarks import called
from rlproof.read.names import Slot, says_advantages
from rlproof.read.targets import Role
from rlproof.repair.edits.model import Change, Edit
from rlproof.repair.edits.site import Site, bracketed

_BY_TOKEN = re.compile(r"\badvantages?`*:?\s+(?:of shape\s+)?\(\s*\w+\s*,\s*\w+\s*\)")
LABEL = "count what the loss clips: above the range where A > 0, below it where A < 0"


def sided(site: Site) -> Iterator[Edit]:
    """`(r < low) | (r > high)` to `(r < low) & (A < 0) | (r > high) & (A > 0)`, and its kin."""
    if site.target is None or site.target.role is not Role.CLIP_FRACTION or not site.arrays:
        return
    for node in site.everywhere(ast.expr):
        yield from _of_order(site, node)
    widened = _advantages(site)
    if widened is None:
        return
    used = {n.id for n in ast.walk(site.function or site.script.source.tree)
            if isinstance(n, ast.Name)}  # fmt: skip
    own = next(name for name in ("adv", "sign_of", "gain", "by_row") if name not in used)
    adv = widened if widened.isidentifier() else own
    for node in site.everywhere(ast.expr):
        for made in (_of_both, _of_distance, _of_change):
            for edit in made(site, node, adv):
                home = site.flow.statement.get(node)
                if adv == widened:
                    yield edit
                elif home is not None and site.alone(home):
                    line = site.before(home, f"{own} = {widened}")
                    yield replace(edit, changes=(line, *edit.changes))


def _of_both(site: Site, node: ast.expr, adv: str) -> Iterator[Edit]:
    """A comparison with either bound, joined by "or" or added up."""
    match node:
        case ast.BinOp(left=one, op=ast.BitOr() | ast.Add(), right=other):
            pass
        case ast.Call(args=[one, other]) if called(node) == "logical_or":
            pass
        case _:
            return
    bare = isinstance(node, ast.Call)
    changes = [_with_sign(site, part, adv, bare) for part in (one, other)]
    if all(changes) and len({_is_below(site, part) for part in (one, other)}) == 2:
        yield Edit(LABEL, tuple(change for change in changes if change is not None))


def _with_sign(site: Site, part: ast.expr, adv: str, bare: bool) -> Change | None:
    """`r < low` to `(r < low) & (A < 0)`, in brackets unless it is bare: an argument."""
    test = _comparison(part)
    below = _is_below(site, part)
    if test is None or below is None:
        return None
    text = f"({site.source(test)}) & ({adv} {'<' if below else '>'} 0)"
    if bare and test is part:
        return site.put(test, text)
    return site.put_simple(test, f"({text})")


def _comparison(part: ast.expr) -> ast.Compare | None:
    """The comparison itself, behind `.float()` and the like."""
    while isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and not part.args:
        part = part.func.value
    return part if isinstance(part, ast.Compare) and len(part.ops) == 1 else None


def _is_below(site: Site, part: ast.expr) -> bool | None:
    """Whether ratios below the bound are counted; None if it is no such comparison."""
    test = _comparison(part)
    if test is None:
        return None
    smaller = isinstance(test.ops[0], ast.Lt | ast.LtE)
    if not smaller and not isinstance(test.ops[0], ast.Gt | ast.GtE):
        return None
    left = Slot.NEW in site.taint(test.left)
    if left == (Slot.NEW in site.taint(test.comparators[0])):
        return None
    return smaller == left


def _of_distance(site: Site, node: ast.expr, adv: str) -> Iterator[Edit]:
    """`abs(r - 1) > eps` to `(r - 1) * sign(A) > eps`."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return
    for part in (node.left, node.comparators[0]):
        if isinstance(part, ast.Call) and called(part) in {"abs", "absolute", "fabs"}:
            inner = part.args[0] if part.args else getattr(part.func, "value", None)
            if isinstance(inner, ast.expr) and Slot.NEW in site.taint(inner):
                text = f"{bracketed(site, inner)} * {site.arrays}.sign({adv})"
                yield Edit(LABEL, (site.put(part, text),))


def _of_order(site: Site, node: ast.expr) -> Iterator[Edit]:
    """`r * A < clipped * A`, which holds where nothing is clipped, turned round."""
    match node:
        case ast.Compare(left=left, ops=[ast.Lt() | ast.Gt() as op], comparators=[right]):
            both = {Slot.NEW, Slot.ADVANTAGES}
            if both <= site.taint(left) and both <= site.taint(right):
                sign = ">" if isinstance(op, ast.Lt) else "<"
                text = f"{site.source(left)} {sign} {site.source(right)}"
                yield Edit(LABEL, (site.put(node, text),))


def _of_change(site: Site, node: ast.expr, adv: str) -> Iterator[Edit]:
    """`r != clipped` to `clipped * A < r * A`."""
    match node:
        case ast.Compare(left=one, ops=[ast.NotEq()], comparators=[other]):
            for first, second in ((one, other), (other, one)):
                sides = [f"{bracketed(site, part)} * {adv}" for part in (first, second)]
                if all(Slot.NEW in site.taint(part) for part in (one, other)):
                    yield Edit(LABEL, (site.put(node, f"{sides[0]} < {sides[1]}"),))


def _advantages(site: Site) -> str | None:
    """The advantages as an array that meets the ratios slot by slot; None where that isn't told.

    A local name of them, or the parameter spelt as the losses of the script widen theirs.
    """
    name = site.name_of(Slot.ADVANTAGES)
    if name is None:
        return None
    for node in site.everywhere(ast.Assign):
        match node.targets:
            case [ast.Name(id=local)] if site.taint(node.value) == {Slot.ADVANTAGES}:
                return local
    if site.target is not None and _BY_TOKEN.search(site.target.doc):
        return name
    suffixes = [s for node in ast.walk(site.script.source.tree) if (s := _widening(site, node))]
    if suffixes:
        return name + suffixes[0]
    met = any(
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Mult)
        and any(isinstance(s, ast.Name) and says_advantages(s.id) for s in (node.left, node.right))
        for loss in site.script.of(Role.LOSS)
        for node in ast.walk(loss.node)
    )
    return name if met else None


def _widening(site: Site, node: ast.AST) -> str | None:
    """`.unsqueeze(1)` or `[:, None]` behind advantages."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=base) as inner, attr="unsqueeze")):
            pass
        case ast.Subscript(value=ast.Name(id=base) as inner, slice=ast.Tuple(elts=[
            ast.Slice(lower=None, upper=None), ast.Constant(value=None) | ast.Attribute()
        ])):  # fmt: skip
            pass
        case _:
            return None
    if not says_advantages(base):
        return None
    assert isinstance(node, ast.expr)
    return site.text[site.span(inner)[1] : site.span(node)[1]]
