"""Repairs of the ratio: exp of the difference, its operands, one ratio per token."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.read.landmarks import called
from rlproof.read.names import Slot
from rlproof.repair.edits.model import Change, Edit
from rlproof.repair.edits.site import Site, reductions


def meetings(site: Site, one: Slot, two: Slot, everywhere: bool = False) -> Iterator[ast.BinOp]:
    """Operators whose two sides are made of these two parameters, one each."""
    for node in site.everywhere(ast.BinOp) if everywhere else site.nodes(ast.BinOp):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.Div):
            left, right = site.taint(node.left), site.taint(node.right)
            apart = not {one, two} <= left and not {one, two} <= right
            if apart and ((one in left and two in right) or (two in left and one in right)):
                yield node


def by_exp(site: Site) -> Iterator[Edit]:
    """`new / old` or `new - old` to `exp(new - old)`."""
    node = next(meetings(site, Slot.NEW, Slot.OLD), None)
    if node is None:
        return
    changes: list[Change] = list(site.wrap(node, f"{site.exp}(", ")"))
    if isinstance(node.op, ast.Div):
        minus = site.operator(node, "/", "-")
        if minus is None:
            return
        changes.append(minus)
    yield Edit("take exp of the difference", (*changes, *site.needs_math))


def swapped(site: Site, node: ast.BinOp, label: str) -> Edit:
    """`a - b` to `b - a`."""
    left, right = site.source(node.left), site.source(node.right)
    return Edit(label, (site.put(node.left, right), site.put(node.right, left)))


def swap_old(site: Site) -> Iterator[Edit]:
    """`exp(old - new)` to `exp(new - old)`."""
    for node in meetings(site, Slot.NEW, Slot.OLD):
        yield swapped(site, node, "turn the difference round")


def to_old(site: Site) -> Iterator[Edit]:
    """`exp(new - ref)` to `exp(new - old)`, where the log-probs of the rollout are given."""
    old = site.name_of(Slot.OLD)
    for node in meetings(site, Slot.NEW, Slot.REF):
        for side in (node.left, node.right):
            if old and isinstance(side, ast.Name) and site.taint(side) == {Slot.REF}:
                yield Edit("divide by the policy that sampled", (site.put(side, old),))


def per_token(site: Site) -> Iterator[Edit]:
    """Take out the sum over tokens inside the ratio."""
    for call, inner in reductions(site):
        taint = site.taint(call)
        if {Slot.NEW, Slot.OLD} <= taint and Slot.ADVANTAGES not in taint:
            yield Edit("one ratio per token", (site.put(call, _plain(site, inner)),))


def _plain(site: Site, inner: ast.expr) -> str:
    text = site.source(inner)
    return f"({text})" if isinstance(inner, ast.BinOp | ast.UnaryOp) else text


def uncoupled(site: Site) -> Iterator[Edit]:
    """Take out what subtracts an average over the batch from the log-ratios."""
    for node in site.nodes(ast.stmt):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.BinOp(left=ast.Name(id=same), op=ast.Sub() | ast.Div()),
            ) if name == same and site.alone(node):
                yield Edit("leave the log-ratios as they are", (site.drop(node),))
            case ast.AugAssign(target=ast.Name(), op=ast.Sub() | ast.Div()) if site.alone(node):
                yield Edit("leave the log-ratios as they are", (site.drop(node),))
    yield from _without_average(site)


def _without_average(site: Site) -> Iterator[Edit]:
    """`x - x.mean()` to `x`."""
    for node in site.nodes(ast.BinOp):
        averages = any(
            isinstance(n, ast.Call) and getattr(n.func, "attr", "") in {"mean", "average"}
            for n in ast.walk(node.right)
        )
        if averages and isinstance(node.op, ast.Sub) and Slot.NEW in site.taint(node.right):
            yield Edit(
                "leave the log-ratios as they are", (site.put(node, site.source(node.left)),)
            )


def with_axis(site: Site) -> Iterator[Edit]:
    """`ratio = exp(…)` of a row to `exp(…).unsqueeze(-1)`, which meets every token of it."""
    for node in site.everywhere(ast.Call):
        if called(node) == "exp" and {Slot.NEW, Slot.OLD} <= site.taint(node):
            stop = site.span(node)[1]
            text = ".unsqueeze(-1)" if site.is_torch else "[:, None]"
            yield Edit("give the row an axis of tokens", (Change(stop, stop, text),))
