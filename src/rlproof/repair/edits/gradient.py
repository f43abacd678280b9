"""Repairs of gradients that are cut off: `detach`, `stop_gradient`, `no_grad`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.read.landmarks import called
from rlproof.read.names import Slot, words
from rlproof.repair.edits.model import Change, Edit
from rlproof.repair.edits.site import Site, unwrapped

_CUTS = {"detach", "stop_gradient", "stop_grad"}


def attached(site: Site) -> Iterator[Edit]:
    """Take out what cuts the gradient of the new log-probs off."""
    for node in site.near(ast.Call):
        if called(node) not in _CUTS or Slot.NEW not in site.taint(node):
            continue
        inner = node.args[0] if node.args else getattr(node.func, "value", None)
        if isinstance(inner, ast.expr):
            yield Edit("let the gradient through", (unwrapped(site, node, inner),))
    yield from _without_data(site)
    yield from blocks(site)


def of_bonus(site: Site) -> Iterator[Edit]:
    """`c * entropy.detach()` to `c * entropy`; blocks of no_grad around it."""
    site = site if site.elsewhere else site.as_written()
    yield from blocks(site)
    for node in site.near(ast.Call):
        inner = node.args[0] if node.args else getattr(node.func, "value", None)
        if called(node) not in _CUTS or not isinstance(inner, ast.expr):
            continue
        home = site.flow.statement.get(node)
        named = [t.id for t in getattr(home, "targets", ()) if isinstance(t, ast.Name)]
        named += [n.id for n in ast.walk(inner) if isinstance(n, ast.Name)]
        named += [called(n) for n in ast.walk(inner) if isinstance(n, ast.Call)]
        if any(set(words(name)) & {"entropy", "entropies", "ent"} for name in named):
            yield Edit("let the gradient through", (unwrapped(site, node, inner),))


def _without_data(site: Site) -> Iterator[Edit]:
    """`x.data` to `x`."""
    for node in site.everywhere(ast.Attribute):
        if node.attr == "data" and Slot.NEW in site.taint(node):
            yield Edit("let the gradient through", (unwrapped(site, node, node.value),))


def blocks(site: Site) -> Iterator[Edit]:
    """`with torch.no_grad():` around a part of the loss: its statements move out."""
    for node in site.everywhere(ast.With):
        calls = [item.context_expr for item in node.items]
        quiet = all(
            isinstance(c, ast.Call) and called(c) in {"no_grad", "inference_mode"} for c in calls
        )
        if not quiet or not all(site.alone(s) for s in node.body):
            continue
        step = site.step(node.body, node)
        head = Change(site.starts[node.lineno - 1], site.starts[node.body[0].lineno - 1], "")
        moved = [
            Change(site.starts[line - 1], site.starts[line - 1] + len(step), "")
            for line in range(node.body[0].lineno, (node.end_lineno or 0) + 1)
            if site.text.startswith(step, site.starts[line - 1])
        ]
        yield Edit("let the gradient through", (head, *moved))
