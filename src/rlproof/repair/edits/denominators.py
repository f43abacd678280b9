"""Repairs of divisors: real tokens instead of the padded width, and never zero."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.read.landmarks import called, is_width
from rlproof.read.names import Slot, objective_slot
from rlproof.repair.edits.model import Change, Edit
from rlproof.repair.edits.site import Site


def _divisions(site: Site) -> Iterator[ast.BinOp]:
    for node in site.near(ast.BinOp):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            yield node


def at_least_one(site: Site, text: str) -> str:
    """A count of tokens that is never 0."""
    if site.arrays is None:
        return f"max({text}, 1)"
    if site.is_torch:
        return f"{text}.clamp(min=1)"
    return f"{site.arrays}.maximum({text}, 1)"


def guarded(site: Site) -> Iterator[Edit]:
    """`x / mask.sum()` to `x / mask.sum().clamp(min=1)`."""
    for node in _divisions(site):
        right = node.right
        if Slot.MASK in site.taint(right) and Slot.NEW not in site.taint(right):
            changes = [site.put(right, at_least_one(site, site.source(right)))]
            yield Edit("never divide by 0", tuple(changes))
    for node in _divisions(site):
        if isinstance(node.right, ast.Name) and site.arrays is None:
            text = at_least_one(site, site.source(node.right))
            yield Edit("never divide by 0", (site.put(node.right, text),))


def by_tokens(site: Site) -> Iterator[Edit]:
    """`… / x.shape[1]` to the number of real tokens of each row."""
    mask = _array_mask(site)
    if mask is None:
        return
    word, _ = site.axis
    for node in _divisions(site):
        if any(is_width(inner) for inner in ast.walk(node.right)):
            count = at_least_one(site, f"{mask}.sum({word}=1)")
            yield Edit("divide by the real tokens of the row", (site.put(node.right, count),))
            count = at_least_one(site, f"{mask}.sum()")
            yield Edit("divide by the real tokens", (site.put(node.right, count),))


def _array_mask(site: Site) -> str | None:
    for node in site.everywhere(ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name) and site.taint(node.value) == {Slot.MASK}:
                return target.id
    return site.name_of(Slot.MASK)


def by_budget(site: Site) -> Iterator[Edit]:
    """`… / (n * x.shape[1])` to the budget that is given: `… / (n * max_tokens)`."""
    budgets = [name for name in (site.name_of(Slot.WIDTH), *_constants(site)) if name]
    for node in _divisions(site):
        for inner in ast.walk(node.right):
            if isinstance(inner, ast.expr) and is_width(inner):
                for budget in budgets:
                    change = site.put(inner, budget)
                    yield Edit("divide by the constant that is given", (change,))


def _constants(site: Site) -> Iterator[str]:
    """Numbers of the module that are, by their name, the most tokens of a completion."""
    for node in site.script.source.tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=int())):
                if objective_slot(name.lower()) is Slot.WIDTH:
                    yield name


def constant(site: Site) -> Iterator[Edit]:
    """`x.sum() / mask.sum()` to `x.sum() / (len(x) * max_tokens)`, where a budget is given."""
    budget = site.name_of(Slot.WIDTH)
    for node in _divisions(site):
        root = getattr(getattr(node.left, "func", None), "value", None)
        sums = isinstance(node.left, ast.Call) and called(node.left) == "sum"
        if budget and sums and isinstance(root, ast.Name):
            if Slot.MASK in site.taint(node.right):
                text = f"(len({root.id}) * {budget})"
                yield Edit("divide by the constant that is given", (site.put(node.right, text),))


def summed_first(site: Site) -> Iterator[Edit]:
    """`(x * mask / n).mean()` to `(x * mask / n).sum(1).mean()`: rows are added up."""
    word, _ = site.axis
    for node in site.near(ast.Call):
        if called(node) == "mean" and not node.args and isinstance(node.func, ast.Attribute):
            stop = site.span(node.func.value)[1]
            while site.text[stop] == ")":  # brackets around what is averaged
                stop += 1
            change = Change(stop, stop, f".sum({word}=1)")
            yield Edit("add up the terms of each row", (change,))


def token_mean(site: Site) -> Iterator[Edit]:
    """`(x.sum(1) / n).mean()` to `x.sum() / n_all`: every token of the batch weighs the same."""
    for node in site.nodes(ast.Call):
        inner = getattr(node.func, "value", None)
        if called(node) != "mean" or not isinstance(inner, ast.BinOp):
            continue
        top = inner.left
        if isinstance(inner.op, ast.Div) and isinstance(top, ast.Call) and called(top) == "sum":
            rows = [c for c in ast.walk(inner.right) if isinstance(c, ast.Call)]
            sums = [c for c in rows if called(c) == "sum" and Slot.MASK in site.taint(c)]
            if not sums:
                continue
            counts = [c for c in [top, *sums] if isinstance(c.func, ast.Attribute)]
            changes = [Change(site.span(c.func)[1], site.span(c)[1], "()") for c in counts]
            start, stop = site.span(node)[0], site.span(inner)[0]
            end, last = site.span(inner)[1], site.span(node)[1]
            outer = [Change(start, stop, ""), Change(end, last, "")] if start < stop else []
            yield Edit("every token weighs the same", (*changes, *outer))


def without_repeats(site: Site) -> Iterator[Edit]:
    """`(per_row * mask).sum()` to `per_row.sum()`: a row's total counts once."""
    for node in site.near(ast.BinOp):
        masks = Slot.MASK in site.taint(node.right) and Slot.NEW not in site.taint(node.right)
        if isinstance(node.op, ast.Mult) and masks and Slot.NEW in site.taint(node.left):
            start, stop = site.span(node)
            bare = isinstance(node.left, ast.Name)
            enclosed = site.text[:start].endswith("(") and site.text[stop:].startswith(")")
            if bare and enclosed:
                start, stop = start - 1, stop + 1
            yield Edit(
                "count each row's total once", (Change(start, stop, site.source(node.left)),)
            )


def row_total_per_token(site: Site) -> Iterator[Edit]:
    """`(…).sum(dim=1, keepdim=True)` taken out: what meets the mask is per token again."""
    for node in site.everywhere(ast.Call):
        inner = getattr(node.func, "value", None)
        keeps = any(k.arg in {"keepdim", "keepdims"} for k in node.keywords)
        if called(node) == "sum" and keeps and isinstance(inner, ast.expr):
            if Slot.ADVANTAGES in site.taint(inner):
                stop = site.span(node.func)[1] - len(".sum")
                yield Edit("keep one value per token", (Change(stop, site.span(node)[1], ""),))
