"""Repairs of the penalty: its sign, operands, estimator, coefficient, policy and mask."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.read.names import Slot
from rlproof.read.parameters import number
from rlproof.repair.edits.model import Change, Edit
from rlproof.repair.edits.ratio import meetings, swapped
from rlproof.repair.edits.site import Site, bracketed, reductions, unwrapped


def added(site: Site) -> Iterator[Edit]:
    """`… - beta * kl` to `… + beta * kl`."""
    for node in site.near(ast.BinOp):
        if isinstance(node.op, ast.Sub) and _is_penalty(site, node.right):
            change = site.operator(node, "-", "+")
            if change and Slot.REF not in site.taint(node.left):
                yield Edit("add the penalty", (change,))
        taken = isinstance(node.op, ast.Add) and _is_penalty(site, node.right)
        if taken and Slot.ADVANTAGES in site.taint(node.left):  # `-(surrogate + beta * kl)`
            change = site.operator(node, "+", "-")
            if change:
                yield Edit("add the penalty", (change,))
    yield from _added_up(site)
    yield from _without_minus(site)


def _added_up(site: Site) -> Iterator[Edit]:
    """`total -= beta * kl` to `total += beta * kl`."""
    for node in site.near(ast.AugAssign):
        if isinstance(node.op, ast.Sub) and _is_penalty(site, node.value):
            start, stop = site.span(node.target)[1], site.span(node.value)[0]
            at = site.text.find("-=", start, stop)
            if at >= 0:
                yield Edit("add the penalty", (Change(at, at + 2, "+="),))


def _without_minus(site: Site) -> Iterator[Edit]:
    """`-kl` to `kl`."""
    for node in site.everywhere(ast.UnaryOp):
        if isinstance(node.op, ast.USub) and Slot.REF in site.taint(node.operand):
            yield Edit("take out the minus", (unwrapped(site, node, node.operand),))


def _is_penalty(site: Site, node: ast.expr) -> bool:
    """Something made of the reference that is more than one of the two sides of a difference."""
    taint = site.taint(node)
    return Slot.REF in taint and Slot.NEW in taint and Slot.ADVANTAGES not in taint


def turned(site: Site) -> Iterator[Edit]:
    """`new - ref` to `ref - new`, unless the ratio uses that difference too."""
    label = "turn the difference round"
    if site.target is not None and not site.target.has(Slot.OLD):
        here = {id(node) for node in site.near(ast.BinOp)}
        found = [n for n in meetings(site, Slot.NEW, Slot.REF, everywhere=True) if id(n) in here]
        both = [change for node in found for change in swapped(site, node, label).changes]
        if len(found) > 1:  # in the exponential and beside it: a ratio is only one of the two
            yield Edit(label, tuple(both))
        return
    for node in meetings(site, Slot.NEW, Slot.REF):
        if Slot.OLD not in site.taint(node):
            yield swapped(site, node, label)


def turned_metric(site: Site) -> Iterator[Edit]:
    """`ref - new` to `new - ref` in an estimate that is only looked at."""
    for other in (Slot.REF, Slot.OLD):
        for node in meetings(site, Slot.NEW, other, everywhere=True):
            yield swapped(site, node, "turn the difference round")


def as_k3(site: Site) -> Iterator[Edit]:
    """k1 = new − ref in the loss to k3 = exp(ref − new) − (ref − new) − 1."""
    for node in [*meetings(site, Slot.NEW, Slot.REF), *meetings(site, Slot.NEW, Slot.REF, True)]:
        if isinstance(node.op, ast.Sub) and Slot.REF in site.taint(node.right):
            gap = f"{bracketed(site, node.right)} - {bracketed(site, node.left)}"
            k3 = f"{site.exp}({gap}) - ({gap}) - 1"
            text = k3 if _stands_alone(site, node) or _in_brackets(site, node) else f"({k3})"
            yield Edit("use the k3 estimator", (site.put(node, text), *site.needs_math))


def _stands_alone(site: Site, node: ast.expr) -> bool:
    return getattr(site.flow.statement.get(node), "value", None) is node


def _in_brackets(site: Site, node: ast.expr) -> bool:
    start, stop = site.span(node)
    return site.text[:start].endswith("(") and site.text[stop:].startswith(")")


def as_k3_metric(site: Site) -> Iterator[Edit]:
    """The same in an estimate that is only looked at; a sum of named gaps is one of k3."""
    for node in meetings(site, Slot.NEW, Slot.REF, everywhere=True):
        if isinstance(node.op, ast.Sub):
            turned = Slot.REF in site.taint(node.left)
            one, two = (node.left, node.right) if turned else (node.right, node.left)
            gap = f"{bracketed(site, one)} - {bracketed(site, two)}"
            text = f"{site.exp}({gap}) - ({gap}) - 1"
            label = "log the k3 estimator"
            yield Edit(label, (site.put(node, f"({text})"), *site.needs_math))
            yield Edit(label, (site.put(node, text), *site.needs_math))
    for call, inner in reductions(site):
        if isinstance(inner, ast.Name) and {Slot.NEW, Slot.REF} <= site.taint(inner):
            for sign in ("", "-"):
                gap = f"{sign}{inner.id}"
                minus = f"+ {inner.id}" if sign else f"- {inner.id}"
                text = f"({site.exp}({gap}) {minus} - 1)"
                yield Edit("log the k3 estimator", (site.put(inner, text),))
            del call


def to_reference(site: Site) -> Iterator[Edit]:
    """The old log-probs in the penalty to those of the reference."""
    names = {
        slot: [n.id for n in site.everywhere(ast.Name)
               if isinstance(n, ast.Name) and site.taint(n) == {slot}]
        for slot in (Slot.OLD, Slot.REF)
    }  # fmt: skip
    pairs = {
        old: next((ref for ref in names[Slot.REF] if _kin(old, ref)), None)
        for old in dict.fromkeys(names[Slot.OLD])
    }
    bound = _bound_together(site)
    for node in meetings(site, Slot.NEW, Slot.OLD):
        changes = []
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and site.taint(inner) == {Slot.OLD}:
                name = pairs.get(inner.id) or bound.get(inner.id) or site.name_of(Slot.REF)
                if name is not None:
                    changes.append(site.put(inner, name))
        if changes:
            yield Edit("compare with the reference", tuple(changes))
    for argument in _handed_on(site):
        if name := pairs.get(argument.id) or site.name_of(Slot.REF):
            yield Edit("compare with the reference", (site.put(argument, name),))


def _handed_on(site: Site) -> Iterator[ast.Name]:
    """Old log-probs that a function is given beside new ones."""
    for call in site.nodes(ast.Call):
        taints = [site.taint(argument) for argument in call.args]
        new = any(Slot.NEW in taint and Slot.OLD not in taint for taint in taints)
        for argument, taint in zip(call.args, taints, strict=True):
            if new and isinstance(argument, ast.Name):
                if Slot.OLD in taint and Slot.NEW not in taint:
                    yield argument


def _kin(old: str, ref: str) -> bool:
    return any(old.replace(word, stem) == ref
               for word in ("old", "Old") for stem in ("ref", "reference", "Ref"))  # fmt: skip


def _bound_together(site: Site) -> dict[str, str]:
    """Loop variables over old log-probs, with the one over the reference beside them."""
    from rlproof.repair.edits.loops import bindings

    found: dict[str, str] = {}
    for loop in site.everywhere(ast.AST):
        pairs = [(t.id, site.taint(s)) for t, s in bindings(loop) if isinstance(t, ast.Name)]
        olds = [name for name, taint in pairs if taint == {Slot.OLD}]
        refs = [name for name, taint in pairs if taint == {Slot.REF}]
        found |= {old: refs[0] for old in olds if refs}
    return found


def scaled(site: Site) -> Iterator[Edit]:
    """The coefficient that is given instead of a number, or where there is none at all."""
    beta = site.name_of(Slot.BETA)
    if beta is None:
        return
    for node in site.near(ast.BinOp):
        if not isinstance(node.op, ast.Mult):
            continue
        for factor, other in ((node.left, node.right), (node.right, node.left)):
            if number(factor) is not None and Slot.REF in site.taint(other):
                yield Edit(f"scale it by {beta}", (site.put(factor, beta),))
            elif isinstance(factor, ast.Name) and not site.taint(factor):
                value = site.definition_of(factor.id)
                known = value is not None or factor.id.isupper()
                if known and Slot.REF in site.taint(other):
                    yield Edit(f"scale it by {beta}", (site.put(factor, beta),))
    for given in site.everywhere(ast.Assign):
        for target in given.targets:
            if isinstance(target, ast.Name) and target.id == beta and site.alone(given):
                yield Edit(f"keep the {beta} that is given", (site.drop(given),))
    for node in site.everywhere(ast.BinOp):
        if isinstance(node.op, ast.Add) and _is_penalty(site, node.right):
            if Slot.ADVANTAGES in site.taint(node.left):
                text = f"{beta} * {bracketed(site, node.right)}"
                yield Edit(f"scale it by {beta}", (site.put(node.right, text),))


def masked(site: Site) -> Iterator[Edit]:
    """The penalty summed over real tokens, by the index or the factor the surrogate has."""
    mask = site.name_of(Slot.MASK)
    if mask is None:
        return
    indices = [
        site.source(node.slice)
        for node in site.everywhere(ast.Subscript)
        if isinstance(node, ast.Subscript) and site.taint(node.slice) == {Slot.MASK}
        and Slot.NEW in site.taint(node.value)
    ]  # fmt: skip
    for call, inner in reductions(site):
        taint = site.taint(inner)
        if Slot.REF not in taint or Slot.ADVANTAGES in taint or Slot.MASK in taint:
            continue
        stop = site.span(call.func)[1] - len(getattr(call.func, "attr", "")) - 1
        for index in dict.fromkeys(indices):
            if site.text[stop] == ".":
                yield Edit("leave padding out of it", (Change(stop, stop, f"[{index}]"),))
        text = f"{bracketed(site, inner)} * {mask}"
        module = (
            isinstance(call.func, ast.Attribute) and site.span(inner)[0] > site.span(call.func)[1]
        )
        if module:
            yield Edit("leave padding out of it", (site.put(inner, text),))
        else:
            start, end = site.span(call.func)[0], stop
            whole = f"({site.text[start:end]} * {mask})"
            yield Edit("leave padding out of it", (Change(start, end, whole),))
