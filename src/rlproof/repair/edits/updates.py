"""Repairs of updates that are lost, of gradients that add up, of sampling that is cut short."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.read.landmarks import called
from rlproof.repair.edits.model import Change, Edit
from rlproof.repair.edits.site import Site, bracketed, imported
from rlproof.repair.edits.training import is_step

_OPTIMIZERS = {"Adam", "AdamW", "SGD", "RMSprop", "Adagrad", "Adafactor", "LBFGS", "NAdam"}
_CUTS = {"top_k", "top_p", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff",
         "repetition_penalty", "no_repeat_ngram_size", "min_new_tokens", "min_length",
         "min_tokens", "presence_penalty", "frequency_penalty"}  # fmt: skip
KEPT = "keep the updated parameters"


def cleared(site: Site) -> Iterator[Edit]:
    """`optimizer.zero_grad()` before the backward pass."""
    steps = [
        site.source(call.func.value)
        for call in site.everywhere(ast.Call)
        if called(call) == "step" and isinstance(call.func, ast.Attribute)
    ]
    named = [name for name in dict.fromkeys(steps) if "optim" in name or "opt" in name.split("_")]
    for node in site.everywhere(ast.Expr):
        if isinstance(node.value, ast.Call) and called(node.value) == "backward":
            for name in named[:2]:
                line = site.before(node, f"{name}.zero_grad()")
                yield Edit("clear the gradients before every backward pass", (line,))


def given_to_optimizer(site: Site) -> Iterator[Edit]:
    """`weights = theta.clone(); Adam([weights])` to `Adam([theta])`."""
    for call in site.everywhere(ast.Call):
        if called(call) not in _OPTIMIZERS or not call.args:
            continue
        for name in (n for n in ast.walk(call.args[0]) if isinstance(n, ast.Name)):
            value = site.definition_of(name.id)
            root = value
            while isinstance(root, ast.Call | ast.Attribute):
                root = root.func if isinstance(root, ast.Call) else root.value
            if not isinstance(root, ast.Name) or root is value or root.id in site.imports:
                continue
            changes = [site.put(name, root.id)]
            uses = [n for n in site.everywhere(ast.Name) if n.id == name.id]
            holder = next((s for s in site.everywhere(ast.Assign) if s.value is value), None)
            if holder is not None and len(uses) == 2 and site.alone(holder):
                changes.append(site.drop(holder))
            yield Edit("optimise the parameters that are used", tuple(changes))


def same_name(site: Site) -> Iterator[Edit]:
    """`stepped = theta - lr * grad` to `theta = theta - lr * grad`."""
    for node in site.near(ast.Assign):
        value, target = node.value, node.targets[0]
        steps = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub | ast.Add)
        if not isinstance(target, ast.Name) or not isinstance(value, ast.BinOp) or not steps:
            continue
        base = value.left
        if isinstance(base, ast.Name) and is_step(value.right) and base.id != target.id:
            uses = [n for n in site.everywhere(ast.Name) if n.id == target.id]
            yield Edit(KEPT, tuple(site.put(n, base.id) for n in uses))


def into_table(site: Site) -> Iterator[Edit]:
    """`row = table[p]; row = […]` to `table[p] = […]`."""
    for node in site.near(ast.Assign):
        target = node.targets[0]
        for other in site.everywhere(ast.Assign):
            spot = other.value
            if other is node or not isinstance(target, ast.Name) or spot is node.value:
                continue
            same = [t.id for t in other.targets if isinstance(t, ast.Name)] == [target.id]
            if same and isinstance(spot, ast.Subscript) and other.lineno < node.lineno:
                yield Edit(KEPT, (site.put(target, site.source(spot)),))


def rebound(site: Site) -> Iterator[Edit]:
    """`x -= y` to `x = x - y`: a new array, the argument stays as it is."""
    for node in site.nodes(ast.AugAssign):
        start, stop = site.span(node.target)[1], site.span(node.value)[0]
        sign = site.text[start:stop].strip().removesuffix("=")
        if isinstance(node.target, ast.Name) and sign in {"+", "-", "*", "/"}:
            text = f"{node.target.id} = {node.target.id} {sign} {bracketed(site, node.value)}"
            yield Edit("leave the argument as it is", (site.put(node, text),))


def whole_distribution(site: Site) -> Iterator[Edit]:
    """`top_k=20` and its like taken out of the call that samples."""
    for call in site.near(ast.Call):
        parts = sorted([*call.args, *(k.value for k in call.keywords)], key=lambda n: site.span(n))
        changes = []
        for keyword in call.keywords:
            if keyword.arg in _CUTS:
                place = parts.index(keyword.value)
                stop = site.span(keyword.value)[1]
                before = site.span(parts[place - 1])[1] if place else site.span(call.func)[1] + 1
                changes.append(Change(before, stop, ""))
        if changes:
            yield Edit("sample from the whole distribution", tuple(changes))


def overridden(site: Site) -> Iterator[Edit]:
    """A `step` that does nothing, in a class of its own: that of the class above is called."""
    for owner in ast.walk(site.script.source.tree):
        for node in owner.body if isinstance(owner, ast.ClassDef) and owner.bases else ():
            if not isinstance(node, ast.FunctionDef) or node.name != "step" or len(node.body) != 1:
                continue
            given = [a.arg for a in [*node.args.args[1:], *node.args.kwonlyargs]]
            (only,) = node.body
            if isinstance(only, ast.Pass) and not node.args.kwonlyargs:
                text = f"return super().step({', '.join(given)})"
                yield Edit("let the optimizer step", (site.put(only, text),))


def own_copy(site: Site) -> Iterator[Edit]:
    """`reference = model` to a copy of the model, where its parameters are frozen after that."""
    for node in site.everywhere(ast.Assign):
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Name) and isinstance(value, ast.Name | ast.Attribute):
            asks = (n for n in site.everywhere(ast.Attribute) if n.attr == "parameters")
            if any(site.source(n.value) == target.id for n in asks):
                text = f"copy.deepcopy({site.source(value)})"
                changes = (site.put(value, text), *imported(site, "copy"))
                yield Edit("freeze a copy of the model", changes)
