"""Repairs of token log-probs: temperature, shift, stability, precision, axis.

Shapes: B rows, T slots, V vocabulary.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.read.landmarks import called
from rlproof.read.names import Slot
from rlproof.read.parameters import number
from rlproof.repair.edits.model import Change, Edit
from rlproof.repair.edits.site import Site, bracketed, is_simple

_NORMALISERS = {"log_softmax", "softmax", "logsumexp"}
_HALVES = {"half", "bfloat16", "float16"}


def scale_logits(site: Site) -> Iterator[Edit]:
    """`log_softmax(x) … / T` to `log_softmax(x / T)`."""
    name = site.name_of(Slot.TEMPERATURE)
    for node in site.near(ast.BinOp):
        divides = isinstance(node.op, ast.Div) and isinstance(node.right, ast.Name)
        if name is None or not divides or site.source(node.right) != name:
            continue
        for call in site.everywhere(ast.Call):
            if called(call) in _NORMALISERS:
                scored = _scored(site, call)
                inside = scored is not None and not any(n is call for n in ast.walk(node.right))
                if inside and scored is not None:
                    text = f"{bracketed(site, scored)} / {name}"
                    method = scored is getattr(call.func, "value", None)
                    stop = site.span(node)[1]
                    start, end = _brackets(site, node)
                    cut = Change(site.span(node.left)[1], stop, "")
                    drop = (
                        [cut]
                        if start is None
                        else [
                            Change(start, start + 1, ""),
                            Change(site.span(node.left)[1], end, ""),
                        ]
                    )
                    put = site.put(scored, f"({text})" if method else text)
                    yield Edit("divide the logits by the temperature", (put, *drop))


def _brackets(site: Site, node: ast.expr) -> tuple[int | None, int]:
    """Offsets of brackets right around a node whose left side needs none."""
    start, stop = site.span(node)
    simple = isinstance(node, ast.BinOp) and is_simple(node.left)
    if simple and site.text[:start].endswith("(") and site.text[stop:].startswith(")"):
        before = site.text[: start - 1]
        if not before or not (before[-1].isalnum() or before[-1] in "_)]"):
            return start - 1, stop + 1
    return None, stop


def _scored(site: Site, call: ast.Call) -> ast.expr | None:
    """What a softmax is taken of."""
    root = getattr(call.func, "value", None)
    from_module = root is None or (isinstance(root, ast.expr) and _is_module(site, root))
    if from_module:
        return call.args[0] if call.args else None
    return root


def _is_module(site: Site, node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in site.imports


def shifted(site: Site) -> Iterator[Edit]:
    """Logits [:, :-1] with tokens [:, 1:], where the two slices are the other way round."""
    first, last = [], []
    for node in site.everywhere(ast.Slice):
        source = site.source(node)
        if source.replace(" ", "") == "1:":
            first.append(Change(*site.span(node), ":-1"))
        elif source.replace(" ", "") == ":-1":
            last.append(Change(*site.span(node), "1:"))
    if first and last:
        yield Edit("score each token by the logits before it", (*first, *last))


def stable(site: Site) -> Iterator[Edit]:
    """log(softmax(x)) to log_softmax(x); NumPy: the maximum is subtracted first."""
    for call in site.everywhere(ast.Call):
        if called(call) != "log":
            continue
        inner = call.args[0] if call.args else getattr(call.func, "value", None)
        soft = inner
        if isinstance(inner, ast.Name):
            soft = site.definition_of(inner.id)
        if isinstance(soft, ast.Call) and called(soft) == "softmax":
            start = site.span(soft.func)[1] - len("softmax")
            rename = Change(start, start + len("softmax"), "log_softmax")
            if soft is inner:
                yield Edit("use log_softmax", (*_stripped(site, call, soft), rename))
            else:
                assert isinstance(inner, ast.Name)
                yield Edit("use log_softmax", (rename, site.put(call, inner.id)))
    yield from _shifted_by_maximum(site)


def _stripped(site: Site, call: ast.Call, inner: ast.expr) -> tuple[Change, Change]:
    """Take a call away from around its argument or receiver."""
    start, stop = site.span(call)
    first, last = site.span(inner)
    return Change(start, first, ""), Change(last, stop, "")


def _shifted_by_maximum(site: Site) -> Iterator[Edit]:
    """`s = exp(x); log(s / s.sum(…))` to `s = x - x.max(…); s - log(exp(s).sum(…))`."""
    axis, keep = site.axis
    for node in site.everywhere(ast.Assign):
        value, target = node.value, node.targets[0]
        if not isinstance(value, ast.Call) or called(value) != "exp" or not value.args:
            continue
        if not isinstance(target, ast.Name):
            continue
        scored = value.args[0]
        exp, name = site.source(value.func), target.id
        for call in site.everywhere(ast.Call):
            match call:
                case ast.Call(
                    args=[ast.BinOp(left=ast.Name(id=one), op=ast.Div(), right=ast.Call() as total)]
                ) if called(call) == "log" and one == name and called(total) == "sum":
                    rest = site.text[site.span(total.func)[1] : site.span(total)[1]]
                    logits = site.source(scored)
                    if not is_simple(scored):
                        continue
                    peak = f"{logits}.max({axis}=-1, {keep}=True)"
                    if site.is_torch:
                        peak = f"{logits}.amax(dim=-1, keepdim=True)"
                    simple = isinstance(scored, ast.Name)
                    lines = (
                        (site.put(value, f"{logits} - {peak}"),)
                        if simple
                        else (
                            site.put(value, logits),
                            *_line_below(
                                site, node, f"{name} = {name} - {peak.replace(logits, name, 1)}"
                            ),
                        )
                    )
                    log = site.source(call.func)
                    text = f"{name} - {log}({exp}({name}){rest[: rest.index('(')]}.sum{rest})"
                    yield Edit("subtract the maximum first", (*lines, site.put(call, text)))


def _line_below(site: Site, node: ast.stmt, line: str) -> tuple[Change, ...]:
    stop = site.lines(node)[1]
    return (Change(stop, stop, f"{site.indent(node)}{line}\n"),)


def full_precision(site: Site) -> Iterator[Edit]:
    """`.bfloat16()` to `.float()`, and its like."""
    for call in site.everywhere(ast.Call):
        if called(call) in _HALVES and isinstance(call.func, ast.Attribute):
            start = site.span(call.func)[1] - len(called(call))
            yield Edit("compute in float32", (Change(start, site.span(call.func)[1], "float"),))
    for node in site.everywhere(ast.Attribute):
        if node.attr in _HALVES and _is_module(site, node.value):
            start = site.span(node)[1] - len(node.attr)
            yield Edit("compute in float32", (Change(start, site.span(node)[1], "float32"),))


def last_axis(site: Site) -> Iterator[Edit]:
    """`dim=1` to `dim=-1` where logits are normalised."""
    wanted = _NORMALISERS | {"sum", "max", "amax"}
    changes: list[Change] = []
    for call in site.everywhere(ast.Call):
        scores = Slot.LOGITS in site.taint(call) or called(call) in _NORMALISERS
        if called(call) in wanted and scores:
            axes = [k.value for k in call.keywords if k.arg in {"dim", "axis"}]
            if len(call.args) > 1 or _scored(site, call) is not None:
                axes += [a for a in call.args[-1:] if isinstance(number(a), int)]
            changes += [site.put(axis, "-1") for axis in axes if site.source(axis) != "-1"]
    if changes:
        yield Edit("normalise over the vocabulary", tuple(changes))


def normalised(site: Site) -> Iterator[Edit]:
    """`logits.gather(…)` to `log_softmax(logits).gather(…)`; a missing minus."""
    logits = site.name_of(Slot.LOGITS)
    for node in site.everywhere(ast.Name):
        if site.arrays and node.id == logits and isinstance(node.ctx, ast.Load):
            if site.is_torch:
                text = f"{site.arrays}.log_softmax({logits}, dim=-1)"
                yield Edit("take log-probs of the logits", (site.put(node, text),))


def until_end(site: Site) -> Iterator[Edit]:
    """`x.argmax(axis=1)`, which is 0 where no end token is, to the row's width there."""
    axis, _ = site.axis
    if site.arrays is None:
        return
    for call in site.near(ast.Call):
        inner = getattr(call.func, "value", None)
        if called(call) != "argmax" or not isinstance(inner, ast.expr) or _is_module(site, inner):
            continue
        while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
            if called(inner) not in {"int", "float", "long", "astype"}:
                break
            inner = inner.func.value
        text = bracketed(site, inner)
        found = f"{text}.any({axis}=1)"
        whole = f"{site.arrays}.where({found}, {site.source(call)}, {text}.shape[1])"
        yield Edit("a row without an end is whole", (site.put(call, whole),))
