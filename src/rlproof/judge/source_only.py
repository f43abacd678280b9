"""Faults that the source text alone proves, for functions that could not be run.

Only what is certain: a declared parameter that no statement reads, a ratio that divides two
parameters which are log-probabilities, a keyword that one call forwards and another doesn't.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.faults.model import Evidence, Severity
from rlproof.faults.registry import find
from rlproof.faults.seen import Place
from rlproof.judge.findings import Finding
from rlproof.read.anatomy import declares_unused, divides_by_std
from rlproof.read.landmarks import (
    CLIPPERS,
    advantages_landmarks,
    called,
    calls_in,
    loss_landmarks,
    place,
)
from rlproof.read.names import Slot, words
from rlproof.read.targets import Role, Script, Target, module_functions

_LENGTHS = {"length", "lengths", "lens", "seqlens", "seqlen"}
_UNREAD = {
    Role.LOSS: (
        (Slot.MASK, "MSK001", "slots"),
        (Slot.CLIP, "SUR008", "clip"),
        (Slot.BETA, "KLD007", "beta"),
    ),
    Role.ADVANTAGES: (
        (Slot.GROUP_SIZE, "ADV001", "statistics"),
        (Slot.EPS, "ADV004", "division"),
    ),
}


def source_findings(script: Script, names: set[str]) -> list[Finding]:
    """Certain faults of the functions with these names."""
    found: list[Finding] = []
    for target in script.targets:
        if target.name in names:
            found += _unread(target)
            found += _divided_log_probs(target)
            found += _not_forwarded(script, target)
        found += unread_lengths(script, target)
    return sorted(found, key=lambda f: (f.place.line, f.code))


def _unread(target: Target) -> Iterator[Finding]:
    read = _read_for_value(target.node)
    marks = _LANDMARKS.get(target.role)
    for slot, code, landmark in _UNREAD.get(target.role, ()):
        parameter = target.parameter(slot)
        if code == "ADV004" and not divides_by_std(target):
            continue
        if code in ("SUR008", "KLD007") and not _uses_another(code, target):
            continue
        if parameter and marks and parameter.name not in read and not _accepts_anything(target):
            yield _finding(
                code,
                marks(target)[landmark],
                f"the values of the parameter `{parameter.name}` ({slot}) are never read",
                f"`{parameter.name}` in the body of {target.name}",
                "values never read",
            )


def _uses_another(code: str, target: Target) -> bool:
    """Whether the step that the unread parameter belongs to is taken all the same.

    A loss without any clip may have the parameter for the sake of a common signature.
    """
    names = {p.name for p in target.parameters}
    if declares_unused(target, names):
        return False
    if code == "SUR008":
        return any(isinstance(n, ast.Call) and called(n) in CLIPPERS for n in ast.walk(target.node))
    ref = target.parameter(Slot.REF)
    return ref is not None and ref.name in _read_for_value(target.node)


def _read_for_value(function: ast.AST) -> set[str]:
    """Names that are read for more than their length or shape."""
    layout: set[ast.AST] = set()
    for node in ast.walk(function):
        match node:
            case ast.Call(func=ast.Name(id="len")) | ast.Attribute(attr="shape"):
                layout.update(ast.walk(node))
    return {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and n not in layout}


def _accepts_anything(target: Target) -> bool:
    """`locals()` or a body that is only `...`, `pass` or `raise` reads nothing on purpose."""
    calls = {n.func.id for n in ast.walk(target.node)
             if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}  # fmt: skip
    return "locals" in calls or all(
        isinstance(s, ast.Expr | ast.Pass | ast.Raise) for s in target.node.body
    )


def _divided_log_probs(target: Target) -> Iterator[Finding]:
    """`new / old` where both sides are the parameters themselves, not their exponentials."""
    new, old = target.parameter(Slot.NEW), target.parameter(Slot.OLD)
    if target.role is not Role.LOSS or new is None or old is None:
        return
    for node in ast.walk(target.node):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            if _root(node.left) == new.name and _root(node.right) == old.name:
                yield _finding(
                    "SUR001",
                    place(target.name, node),
                    "the ratio divides log-probabilities; the probability ratio is exp(new − old)",
                    f"`{ast.unparse(node)}`",
                    "a quotient of log-probabilities",
                )


def _root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _not_forwarded(script: Script, target: Target) -> Iterator[Finding]:
    """The loss is given `**kwargs`, the clip fraction neither those nor a clip range."""
    if target.role is not Role.TRAIN:
        return
    losses = script.parts(Role.LOSS)
    forwarded = any(_has_stars(c) for t in losses for c in calls_in(target, t.name))
    for metric in script.parts(Role.CLIP_FRACTION):
        clip = metric.parameter(Slot.CLIP)
        for call in calls_in(target, metric.name) if clip and forwarded else ():
            position = [p.name for p in metric.parameters].index(clip.name) if clip else 0
            named = {keyword.arg for keyword in call.keywords}
            if clip and clip.name not in named | {None} and len(call.args) <= position:
                if not _has_stars(call):
                    yield _finding(
                        "MET001",
                        place(target.name, call),
                        f"{metric.name} is not given the `{clip.name}` that the loss may get",
                        f"`{ast.unparse(call)}`",
                        f"`{clip.name}` left at its default",
                        Severity.WARNING,
                    )


def unread_lengths(script: Script, target: Target) -> Iterator[Finding]:
    """Told the lengths, it makes the attention mask of rows that are padded to one width.

    Only a mask that no comparison with a token makes, in the function or in the helper that
    makes it.
    """
    if target.role is not Role.LOG_PROBS:
        return
    read = _read_for_value(target.node)
    told = [p.name for p in target.parameters
            if p.required and set(words(p.name)) & _LENGTHS and p.name not in read]  # fmt: skip
    masks = {
        keyword.value.id
        for node in ast.walk(target.node)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "attention_mask" and isinstance(keyword.value, ast.Name)
    }
    helpers = {node.name: node for node in module_functions(script.source.tree)}
    for node in ast.walk(target.node) if told else ():
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                made = [call, *filter(None, [helpers.get(called(call))])]
                if name in masks and not any(map(_compares, made)):
                    yield _finding(
                        "MSK013",
                        place(target.name, node),
                        f"`{told[0]}` is never read, and the attention mask is made of rows that "
                        "are padded to one width: padding counts as text",
                        f"`{ast.unparse(call)}`",
                        f"a mask that doesn't know `{told[0]}`",
                        Severity.WARNING,
                    )


def _compares(node: ast.AST) -> bool:
    tests = {"ne", "eq", "lt", "le", "gt", "ge", "not_equal"}
    return any(
        isinstance(n, ast.Compare) or (isinstance(n, ast.Call) and called(n) in tests)
        for n in ast.walk(node)
    )


def _has_stars(call: ast.Call) -> bool:
    return any(keyword.arg is None for keyword in call.keywords)


def _finding(
    code: str, where: Place, message: str, source: str, got: str, severity: Severity | None = None
) -> Finding:
    fault = find(code)
    evidence = Evidence(f"source: {source}", got, "read by the code that it controls")
    return Finding(fault, severity or fault.severity, where, message, evidence)


_LANDMARKS = {Role.LOSS: loss_landmarks, Role.ADVANTAGES: advantages_landmarks}
