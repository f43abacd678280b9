"""Repairs of the training loop: what is computed when, from which parameters, and its sign."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.read.landmarks import called
from rlproof.read.names import Slot, words
from rlproof.read.targets import Role
from rlproof.repair.edits.model import Change, Edit
from rlproof.repair.edits.site import Site, bracketed


def hoisted(site: Site) -> Iterator[Edit]:
    """Move a statement before the innermost loop that holds it."""
    statement = site.statement_at(site.finding.place.line)
    loops = [
        node
        for node in site.everywhere(ast.stmt)
        if isinstance(node, ast.For | ast.While)
        and statement is not None
        and any(inner is statement for inner in node.body)
    ]
    if statement is not None and not loops:  # alone in `with torch.no_grad():`
        around = [w for w in site.everywhere(ast.With) if w.body == [statement]]
        statement = around[0] if around else statement
        loops = [
            node
            for node in site.everywhere(ast.For)
            if any(inner is statement for inner in node.body)
        ]
    if statement is None or not loops or not site.alone(statement):
        return
    loop = max(loops, key=lambda node: node.lineno)
    start, stop = site.lines(statement)
    outer = site.indent(loop)
    step = site.indent(statement)
    lines = site.text[start:stop].splitlines(keepends=True)
    moved = "".join(outer + line.removeprefix(step) if line.strip() else line for line in lines)
    moved = moved if moved.endswith("\n") else f"{moved}\n"
    before = site.lines(loop)[0]
    label = "compute them once, before the loop over epochs"
    yield Edit(label, (Change(start, stop, ""), Change(before, before, moved)))


def from_policy(site: Site) -> Iterator[Edit]:
    """Old log-probs from the parameters that sampled the rollout."""
    given = [
        argument.id
        for call in site.everywhere(ast.Call)
        if isinstance(call, ast.Call) and _is(site, call, Role.ROLLOUT)
        for argument in call.args[:1]
        if isinstance(argument, ast.Name)
    ]
    for call in site.nodes(ast.Call):
        first = call.args[0] if call.args else None
        if isinstance(first, ast.Name) and _is(site, call, Role.LOG_PROBS):
            for name in dict.fromkeys(given):
                if name != first.id:
                    yield Edit("score with the policy that sampled", (site.put(first, name),))
    yield from _into_loop(site)


def _into_loop(site: Site) -> Iterator[Edit]:
    """Log-probs that were computed once before all steps move behind the sampling."""
    statement = site.statement_at(site.finding.place.line)
    if statement is None or not site.alone(statement):
        return
    for loop in site.everywhere(ast.For):
        if loop.lineno <= statement.lineno:
            continue
        for inner in loop.body:
            samples = [c for c in ast.walk(inner) if isinstance(c, ast.Call)]
            if any(_is(site, c, Role.ROLLOUT) for c in samples) and site.alone(inner):
                start, stop = site.lines(statement)
                text = site.text[start:stop].strip() + "\n"
                at = site.lines(inner)[1]
                moved = Change(at, at, site.indent(inner) + text)
                yield Edit("compute them for every rollout", (Change(start, stop, ""), moved))


def _is(site: Site, call: ast.Call, role: Role) -> bool:
    return called(call) in {target.name for target in site.script.of(role)}


def copied(site: Site) -> Iterator[Edit]:
    """`ref = theta` to a copy, by what the parameters are."""
    for node in site.nodes(ast.Assign):
        value = node.value
        inner = value
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            inner = value.func.value  # `theta.detach()` shares its memory
        if not isinstance(inner, ast.Name):
            continue
        name = inner.id
        label = "keep a copy of the first parameters"
        kind = _kind(site, name)
        texts = {
            "tensor": [f"{name}.detach().clone()"],
            "array": [f"{name}.copy()"],
            "dict": [f"{{key: row[:] for key, row in {name}.items()}}"],
            "rows": [f"[row[:] for row in {name}]"],
        }.get(kind, [f"[row[:] for row in {name}]", f"{name}.copy()", f"{name}.detach().clone()"])
        for text in texts:
            yield Edit(label, (site.put(value, text),))


def _kind(site: Site, name: str) -> str:
    values = [
        n.value
        for n in site.everywhere(ast.Assign)
        if any(isinstance(t, ast.Name) and t.id == name for t in n.targets)
    ]
    for made in values:
        if isinstance(made, ast.Dict | ast.DictComp):
            return "dict"
        if isinstance(made, ast.List | ast.ListComp):
            return "rows"
        if isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute):
            root = made.func.value
            module = site.imports.get(root.id, "") if isinstance(root, ast.Name) else ""
            if module in ("torch", "numpy", "jax.numpy"):
                return "tensor" if module == "torch" else "array"
    return ""


def kept_update(site: Site) -> Iterator[Edit]:
    """`step(theta, …)` to `theta = step(theta, …)`, where it returns what it updated."""
    for node in site.near(ast.Expr):
        call = node.value
        if isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.Name):
            function = site.functions.get(called(call))
            returns = function is not None and any(
                isinstance(n, ast.Return) and n.value is not None for n in ast.walk(function)
            )
            if returns:
                start, _ = site.span(node)
                name = call.args[0].id
                yield Edit("keep the updated parameters", (Change(start, start, f"{name} = "),))


def descending(site: Site) -> Iterator[Edit]:
    """`theta += lr * grad` to `theta -= lr * grad`."""
    label = "go down the loss"
    for node in site.near(ast.AugAssign):
        if isinstance(node.op, ast.Add) and isinstance(node.value, ast.BinOp):
            start, stop = site.span(node.target)[1], site.span(node.value)[0]
            at = site.text.find("+=", start, stop)
            if at >= 0 and is_step(node.value):
                yield Edit(label, (Change(at, at + 2, "-="),))
    yield from _difference(site)
    yield from _minimised(site)


def _difference(site: Site) -> Iterator[Edit]:
    """`theta + lr * grad` to `theta - lr * grad`."""
    label = "go down the loss"
    for node in site.near(ast.BinOp):
        if isinstance(node.op, ast.Add) and is_step(node.right):
            change = site.operator(node, "+", "-")
            if change:
                yield Edit(label, (change,))


def _minimised(site: Site) -> Iterator[Edit]:
    """An optimizer that is told to maximise."""
    label = "go down the loss"
    for node in site.everywhere(ast.keyword):
        if node.arg == "maximize" and isinstance(node.value, ast.Constant) and node.value.value:
            yield Edit(label, (site.put(node.value, "False"),))


def is_step(node: ast.expr) -> bool:
    """A product with a learning rate."""
    names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
    rate = any(set(words(n)) & {"lr", "rate", "eta", "alpha", "step"} for n in names)
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and rate


def on_copy(site: Site) -> Iterator[Edit]:
    """Work on a copy of an argument that is assigned into."""
    statement = site.statement_at(site.finding.place.line)
    spots = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    root = spots[0]
    while isinstance(root, ast.Subscript | ast.Attribute):
        root = root.value
    if site.function is None or not isinstance(root, ast.Name):
        return
    body = site.function.body
    doc = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    first = body[1] if doc and len(body) > 1 else body[0]
    if not site.alone(first) and first.lineno != (first.end_lineno or 0) and not site.text:
        return
    name = root.id
    texts = [f"list({name})", f"[row[:] for row in {name}]"]
    if site.arrays is not None:
        texts = [f"{name}.clone()" if site.is_torch else f"{site.arrays}.array({name})", *texts]
    for text in texts:
        yield Edit("work on a copy", (site.before(first, f"{name} = {text}"),))


def deterministic(site: Site) -> Iterator[Edit]:
    """Take random numbers out of the loss."""
    from rlproof.read.anatomy import RANDOM

    def draws(node: ast.AST) -> bool:
        return any(isinstance(n, ast.Call) and called(n) in RANDOM for n in ast.walk(node))

    for node in site.everywhere(ast.BinOp):
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if draws(one) and not draws(other):
                text = site.source(other)
                yield Edit("leave chance out of the loss", (site.put(node, text),))
    for call in site.everywhere(ast.Call):
        if called(call) == "dropout" and call.args:
            text = bracketed(site, call.args[0])
            yield Edit("leave chance out of the loss", (site.put(call, text),))
    for statement in site.statements():
        if isinstance(statement, ast.AugAssign) and draws(statement) and site.alone(statement):
            yield Edit("leave chance out of the loss", (site.drop(statement),))


def any_prompt(site: Site) -> Iterator[Edit]:
    """A row of parameters for every prompt id: `len(prompts)` to `max(prompts) + 1`."""
    names = {p for p in (site.name_of(Slot.PROMPTS), "prompts") if p}
    for target in site.script.of(Role.TRAIN):
        for call in ast.walk(target.node):
            if isinstance(call, ast.Call) and called(call) == "len" and len(call.args) == 1:
                argument = call.args[0]
                if isinstance(argument, ast.Name) and argument.id in names:
                    text = f"max({argument.id}) + 1"
                    yield Edit("a row for every prompt id", (site.put(call, text),))


def two_steps(site: Site) -> Iterator[Edit]:
    """A central difference is divided by twice its step."""
    step = site.name_of(Slot.STEP)
    for node in site.everywhere(ast.BinOp) if step else ():
        inside = site.finding.place.line <= node.lineno <= site.finding.place.end_line
        if isinstance(node.op, ast.Div) and inside:
            yield Edit("divide by 2h", (site.put(node.right, f"(2 * {step})"),))
