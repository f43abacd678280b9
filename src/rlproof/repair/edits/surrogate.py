"""Repairs of the surrogate: which of the two terms counts, its sign, its advantages."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.read.anatomy import labels
from rlproof.read.flow import Flow
from rlproof.read.landmarks import CLIPPERS, called
from rlproof.read.names import Slot
from rlproof.repair.edits.model import Change, Edit
from rlproof.repair.edits.site import Site, bracketed, enclosing, is_simple

_SIGNED = ("SUR004", "SUR005", "SUR013")


def _renamed(site: Site, old: str, new: str) -> Iterator[Edit]:
    node = site.surrogate
    if isinstance(node, ast.Call) and old in called(node):
        name = site.source(node.func)
        head, _, tail = name.rpartition(old)
        label = "take the smaller of the two terms" if new == "min" else "take the larger"
        yield Edit(label, (site.put(node.func, f"{head}{new}{tail}"),))


def smaller(site: Site) -> Iterator[Edit]:
    """`max` to `min`; where the sign is wrong too, also both terms negated under the max."""
    yield from _renamed(site, "max", "min")
    yield from _negated_terms(site)


def larger(site: Site) -> Iterator[Edit]:
    """`min` of negated terms to `max`."""
    yield from _renamed(site, "min", "max")


def negated(site: Site) -> Iterator[Edit]:
    """A minus before the surrogate, where it enters the sum."""
    yield from _minus_in_sum(site)
    yield from _minus_at_choice(site)
    yield from _minus_at_return(site)
    yield from _other_sum(site)


def _negated_terms(site: Site) -> Iterator[Edit]:
    """max(a, b) + … to max(−a, −b) + …, which is −min(a, b): one repair of two faults."""
    node = site.surrogate
    both = {"SUR004", "SUR005"} <= site.codes
    if both and isinstance(node, ast.Call) and len(node.args) == 2 and "max" in called(node):
        changes = [change for arg in node.args for change in _minus(site, arg).changes]
        yield Edit("negate both terms and keep max", tuple(changes), frozenset(_SIGNED[:2]))


def _minus(site: Site, node: ast.expr) -> Edit:
    tight = is_simple(node) or (
        isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div)
    )
    before, after = ("-", "") if tight else ("-(", ")")
    changes = site.wrap(node, before, after)
    return Edit("put a minus before the surrogate", changes if after else changes[:1])


def _minus_in_sum(site: Site) -> Iterator[Edit]:
    node = site.surrogate
    if node is None or site.target is None:
        return
    flow = Flow(site.target.node, labels(site.target), {node: "surrogate"})
    for entry in flow.order:
        statement = flow.statement[entry]
        if statement.lineno != site.finding.place.line:
            continue
        value = getattr(statement, "value", None)
        while isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Sub):
            value = value.left if "surrogate" in flow.taints[value.left] else None
        if isinstance(value, ast.expr) and "surrogate" in flow.taints[value]:
            yield _minus(site, value)
        return


def _minus_at_choice(site: Site) -> Iterator[Edit]:
    if site.surrogate is not None:
        yield _minus(site, site.surrogate)


def _minus_at_return(site: Site) -> Iterator[Edit]:
    """A minus before what is returned, where nothing else is added to the surrogate."""
    for node in site.everywhere(ast.Return):
        if isinstance(node, ast.Return) and node.value is not None:
            if Slot.ADVANTAGES in site.taint(node.value):
                yield _minus(site, node.value)


def _other_sum(site: Site) -> Iterator[Edit]:
    """`total += surrogate` to `total -= surrogate`."""
    for node in site.nodes(ast.AugAssign):
        if isinstance(node.op, ast.Add) and Slot.ADVANTAGES in site.taint(node.value):
            start, stop = site.span(node.target)[1], site.span(node.value)[0]
            between = site.text[start:stop]
            if between.count("+=") == 1:
                at = start + between.index("+=")
                yield Edit("subtract the surrogate", (Change(at, at + 2, "-="),))


def _clips(site: Site, node: ast.expr) -> ast.expr | None:
    """The ratio that an expression clips, if it is a clipped ratio or a name of one."""
    if isinstance(node, ast.Name):
        value = site.definition_of(node.id)
        return (
            _clips(site, value) if value is not None and not isinstance(value, ast.Name) else None
        )
    if not isinstance(node, ast.Call):
        return None
    if called(node) in CLIPPERS:
        if isinstance(node.func, ast.Attribute):
            root = node.func.value
            module = isinstance(root, ast.Name) and root.id in site.imports
            return node.args[0] if module and node.args else root
        return node.args[0] if node.args else None
    if called(node) in {"min", "max"}:
        for argument in node.args:
            inner = _clips(site, argument) if isinstance(argument, ast.Call) else None
            if inner is not None:
                return inner
            if {Slot.NEW, Slot.OLD} <= site.taint(argument) and isinstance(argument, ast.Name):
                return argument
    return None


def picker(site: Site) -> str:
    """How this script takes the smaller of two terms."""
    if site.arrays is None:
        return "min"
    return f"{site.arrays}.min" if site.is_torch else f"{site.arrays}.minimum"


def with_unclipped(site: Site) -> Iterator[Edit]:
    """`clipped * A` to `min(ratio * A, clipped * A)`."""
    for node in site.everywhere(ast.BinOp):
        if not isinstance(node.op, ast.Mult):
            continue
        for clipped, adv in ((node.left, node.right), (node.right, node.left)):
            ratio = _clips(site, clipped)
            if ratio is not None and Slot.ADVANTAGES in site.taint(adv):
                first = f"{bracketed(site, ratio)} * {bracketed(site, adv)}"
                opening, closing = site.wrap(node, f"{picker(site)}({first}, ", ")")
                yield Edit("take the smaller of it and the unclipped term", (opening, closing))


def advantage_inside(site: Site) -> Iterator[Edit]:
    """`min(ratio, clipped) * A` to `min(ratio * A, clipped * A)`."""
    for node in site.nodes(ast.BinOp):
        if not isinstance(node.op, ast.Mult):
            continue
        for side, adv in ((node.left, node.right), (node.right, node.left)):
            choice = side.operand if isinstance(side, ast.UnaryOp) else side
            picks = isinstance(choice, ast.Call) and called(choice) in {"min", "minimum", "fmin"}
            if picks and isinstance(choice, ast.Call) and len(choice.args) == 2:
                if Slot.ADVANTAGES in site.taint(adv) and Slot.NEW not in site.taint(adv):
                    factor = bracketed(site, adv)
                    one, two = (f"{bracketed(site, arg)} * {factor}" for arg in choice.args)
                    text = f"{site.source(choice.func)}({one}, {two})"
                    text = text if choice is side else f"-{text}"
                    yield Edit("multiply before the choice", (site.put(node, text),))


def advantages_first(site: Site) -> Iterator[Edit]:
    """The statement that changes the advantages, with its `if`, to before the first term."""
    line = site.finding.place.line
    written = enclosing(site.script.source.tree, line)  # a setting may have been chosen in ours
    body = [s for s in ast.walk(written) if isinstance(s, ast.stmt)]
    outer = [s for s in body if isinstance(s, ast.If) and s.lineno < line
             and (s.end_lineno or 0) >= line and len(s.body) == 1 and not s.orelse]  # fmt: skip
    moved = outer[-1] if outer else site.statement_at(line)
    terms = [s for s in site.statements() if s.lineno < line and isinstance(s, ast.Assign)
             and {Slot.NEW, Slot.ADVANTAGES} <= site.taint(s.value)]  # fmt: skip
    if moved is None or not terms or not site.alone(terms[0]):
        return
    start, stop = site.lines(moved)
    first = site.lines(terms[0])[0]
    changes = (Change(first, first, site.text[start:stop]), site.drop(moved))
    yield Edit("change the advantages before both terms", changes)


def same_advantages(site: Site) -> Iterator[Edit]:
    """Take out the statement that changes the advantages between the two terms."""
    for node in site.nodes(ast.stmt):
        if isinstance(node, ast.Assign | ast.AugAssign) and site.alone(node):
            yield Edit("use the same advantages in both terms", (site.drop(node),))
