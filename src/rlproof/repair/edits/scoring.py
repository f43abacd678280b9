"""Repairs of functions that ask a model for log-probs: temperature, shift, choice, what is given.

Shapes: B rows, T slots, V vocabulary.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.read.extraction import pads_left
from rlproof.read.landmarks import called
from rlproof.read.names import Slot
from rlproof.read.targets import body_without_doc
from rlproof.repair.edits.gradient import blocks
from rlproof.repair.edits.model import Change, Edit
from rlproof.repair.edits.site import Site, bracketed, is_simple

HEATED = "divide the logits by the temperature"
_QUIET = {"no_grad", "inference_mode"}


def _read_off(site: Site) -> Iterator[ast.expr]:
    """What a name is given where the logits are taken out of the model's answer."""
    for node in site.everywhere(ast.Assign):
        reads = any(isinstance(n, ast.Attribute) and n.attr == "logits" for n in ast.walk(node))
        if reads and isinstance(node.targets[0], ast.Name):
            yield node.value


def over(site: Site, node: ast.expr, divisor: str) -> tuple[Change, ...]:
    """Divide a node."""
    if is_simple(node):
        stop = site.span(node)[1]
        return (Change(stop, stop, f" / {divisor}"),)
    return site.wrap(node, "(", f") / {divisor}")


def heated(site: Site) -> Iterator[Edit]:
    """`logits = model(…).logits` to `model(…).logits / temperature`."""
    heat = site.name_of(Slot.TEMPERATURE)
    if heat is not None:
        for value in _read_off(site):
            yield Edit(HEATED, over(site, value, heat))
        yield from _heated_parameter(site, heat)


def _heated_parameter(site: Site, heat: str) -> Iterator[Edit]:
    """Logits that a function is given: divided at their first copy, or in a line of their own."""
    logits = site.name_of(Slot.LOGITS)
    if logits is None or site.function is None or site.target is None:
        return
    copies = [n.value for n in site.statements()
              if isinstance(n, ast.Assign) and site.taint(n.value) == {Slot.LOGITS}]  # fmt: skip
    if site.arrays is not None and copies:
        yield Edit(HEATED, over(site, copies[0], heat))
    first = body_without_doc(site.function)[0]
    if not site.alone(first) or not logits.isidentifier():
        return
    lines = [f"{logits} = {logits} / {heat}"]
    if site.arrays is None:
        row = f"[[x / {heat} for x in line] for line in {{}}]"
        lines = [f"{logits} = [{row.format('row')} for row in {logits}]",
                 f"{logits} = {row.format(logits)}"]  # fmt: skip
    for line in lines:
        yield Edit(HEATED, (site.before(first, line),))


def heated_as_sampled(site: Site) -> Iterator[Edit]:
    """`model(…).logits` divided by what the completions are sampled at.

    That is an expression which means the same here: a number, a name of the module, a setting of
    the same object.
    """
    for heat in dict.fromkeys(_sampled_at(site)):
        for node in site.everywhere(ast.Attribute):
            if node.attr != "logits" or not isinstance(node.ctx, ast.Load):
                continue
            assigned = any(value is node for value in _read_off(site))
            wrapped = site.wrap(node, "(", f" / {heat})")
            yield Edit(HEATED, over(site, node, heat) if assigned else wrapped)


def _sampled_at(site: Site) -> Iterator[str]:
    """Temperatures of calls that sample, as far as the function can say them."""
    tree = site.script.source.tree
    constants = {t.id for n in tree.body if isinstance(n, ast.Assign | ast.AnnAssign)
                 for t in ast.walk(n) if isinstance(t, ast.Name)}  # fmt: skip
    owner = site.finding.place.function.rpartition(".")[0]
    own = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == owner]
    beside = {id(n) for kind in own for n in ast.walk(kind)}
    for call in ast.walk(tree):
        for keyword in call.keywords if isinstance(call, ast.Call) else ():
            value = keyword.value
            roots = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
            known = constants | ({"self"} if id(call) in beside else set())
            if keyword.arg == "temperature" and roots <= known:
                yield site.source(value)


def heat_moved(site: Site) -> Iterator[Edit]:
    """`log_probs / temperature` to `log_probs`, with the logits divided where they are read."""
    heat = site.name_of(Slot.TEMPERATURE)
    for node in site.near(ast.BinOp):
        if isinstance(node.op, ast.Div) and heat and site.source(node.right) == heat:
            cut = Change(site.span(node.left)[1], site.span(node)[1], "")
            for value in _first_logits(site, node):
                yield Edit(HEATED, (*over(site, value, heat), cut))


def _first_logits(site: Site, but: ast.expr) -> list[ast.expr]:
    made = [
        node.value
        for node in site.everywhere(ast.Assign)
        if site.taint(node.value) == {Slot.LOGITS} and all(n is not but for n in ast.walk(node))
    ]
    return [*_read_off(site), *made[:1]]


def heat_once(site: Site) -> Iterator[Edit]:
    """`logits * temperature` to `logits / temperature`; one of two divisions taken out.

    `logits / 0.7` is divided by the temperature instead.
    """
    heat = site.name_of(Slot.TEMPERATURE)
    for node in site.near(ast.BinOp):
        fixed = isinstance(node.right, ast.Constant) or (
            isinstance(node.right, ast.Name)
            and not site.taint(node.right)
            and node.right.id != heat
        )
        if heat and isinstance(node.op, ast.Div) and fixed:
            yield Edit(HEATED, (site.put(node.right, heat),))
        if heat is None or site.source(node.right) != heat:
            continue
        if isinstance(node.op, ast.Mult) and (change := site.operator(node, "*", "/")):
            yield Edit(HEATED, (change,))
        if isinstance(node.op, ast.Div):
            cut = Change(site.span(node.left)[1], site.span(node)[1], "")
            yield Edit("divide by the temperature once", (cut,))


def last_logits_dropped(site: Site) -> Iterator[Edit]:
    """`output.logits` to `output.logits[:, :-1]`; a window of them one slot earlier."""
    label = "score each token by the logits before it"
    cut = {id(n.value) for n in site.everywhere(ast.Subscript)}
    for node in site.everywhere(ast.Attribute):
        if node.attr == "logits" and id(node) not in cut and isinstance(node.ctx, ast.Load):
            stop = site.span(node)[1]
            yield Edit(label, (Change(stop, stop, "[:, :-1]"),))
    for holder in site.everywhere(ast.Subscript):
        if "logits" in site.source(holder.value):
            for part in ast.walk(holder.slice):
                if isinstance(part, ast.Slice) and part.upper is None and part.lower is not None:
                    text = f"{site.source(part.lower)} - 1 : -1"
                    yield Edit(label, (Change(*_slice(site, part), text),))


def _slice(site: Site, node: ast.Slice) -> tuple[int, int]:
    start = site.offset(node.lineno, node.col_offset)
    return start, site.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)


def with_gradient(site: Site) -> Iterator[Edit]:
    """`@torch.no_grad()` taken off, `with torch.no_grad():` taken away."""
    for node in site.function.decorator_list if site.function else ():
        name = node.func if isinstance(node, ast.Call) else node
        if getattr(name, "attr", getattr(name, "id", "")) in _QUIET:
            lines = site.starts[node.lineno - 1], site.starts[node.end_lineno or node.lineno]
            yield Edit("compute them with gradients on", (Change(*lines, ""),))
    yield from blocks(site)


def log_of_softmax(site: Site) -> Iterator[Edit]:
    """`softmax` to `log_softmax`."""
    for call in site.near(ast.Call):
        if called(call) == "softmax":
            stop = site.span(call.func)[1]
            start = stop - len("softmax")
            yield Edit("take log_softmax", (Change(start, stop, "log_softmax"),))


def of_the_token(site: Site) -> Iterator[Edit]:
    """`log_probs.max(dim=-1).values` to the log-prob of the token that was sampled."""
    tokens = site.name_of(Slot.TOKENS) or site.name_of(Slot.LABELS)
    is_torch = any(name.startswith("torch") for name in site.imports.values())
    if tokens is None or not (is_torch or site.arrays):
        return
    for node in site.near(ast.expr):
        inner = getattr(node, "value", None)
        picks = isinstance(inner, ast.Call) and called(inner) == "max"
        plain = isinstance(node, ast.Call) and called(node) in {"amax", "mean"}
        whole = inner if picks and getattr(node, "attr", "") == "values" else None
        whole = node if plain else whole
        scores = getattr(getattr(whole, "func", None), "value", None)
        if whole is None or not isinstance(scores, ast.expr):
            continue
        for index in (f"{tokens}[:, 1:]", tokens):
            text = (
                f"{bracketed(site, scores)}.gather(-1, {index}.unsqueeze(-1)).squeeze(-1)"
                if is_torch
                else f"{site.arrays}.take_along_axis({site.source(scores)}, "
                f"{index}[..., None], axis=-1)[..., 0]"
            )
            yield Edit("gather the token that was sampled", (site.put(node, text),))


def completion_only(site: Site) -> Iterator[Edit]:
    """`per_token.sum(-1)` without the prompt, and `[:, :keep]` to `[:, -keep:]`."""
    start, keep = site.name_of(Slot.START), site.name_of(Slot.KEEP)
    for node in site.near(ast.Slice) if keep else ():
        if node.lower is None and node.upper is not None and site.source(node.upper) == keep:
            yield Edit("take the last tokens", (Change(*_slice(site, node), f"-{keep}:"),))
    for call in site.near(ast.Call):
        root = getattr(call.func, "value", None)
        if called(call) not in {"sum", "mean"} or not isinstance(root, ast.expr):
            continue
        windows = [f"[:, {start} - 1 :]"] if start else []
        windows += [f"[:, -{keep}:]"] if keep else []
        for window in windows:
            text = f"{bracketed(site, root)}{window}"
            yield Edit("leave the prompt out", (site.put(root, text),))


def as_long_as_told(site: Site) -> Iterator[Edit]:
    """A mask of the padded width to one of the lengths that are given; rows padded on the right."""
    tokens, lengths = site.name_of(Slot.TOKENS), site.name_of(Slot.LENGTHS)
    slots = frozenset(p.slot for p in site.target.parameters if p.slot) if site.target else set()
    torch = next((name for name, module in site.imports.items() if module == "torch"), None)
    if not tokens or not lengths or torch is None or pads_left(site.script, frozenset(slots)):
        return
    for given in site.nodes(ast.Assign):
        if isinstance(given.value, ast.Call) and site.alone(given):
            device = f"device={tokens}.device"
            places = f"{torch}.arange({tokens}.shape[1], {device})"
            ends = f"{torch}.as_tensor({lengths}, {device})[:, None]"
            around = site.indent(given)
            inner = f"\n{around}    "
            text = f"({inner}{places}{inner}< {ends}\n{around}).long()"
            yield Edit("attend to as many tokens as there are", (site.put(given.value, text),))


def attended(site: Site) -> Iterator[Edit]:
    """`model(ids)` to `model(ids, attention_mask=attention_mask)`."""
    model, mask = site.name_of(Slot.MODEL), site.name_of(Slot.ATTENTION)
    for call in site.near(ast.Call):
        if mask and site.source(call.func) == model:
            stop = site.span(call)[1] - 1
            comma = ", " if call.args or call.keywords else ""
            yield Edit("give the model its attention mask",
                       (Change(stop, stop, f"{comma}attention_mask={mask}"),))  # fmt: skip
