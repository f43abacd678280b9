"""Parameters of outlined functions with their final slots: names, then how the code uses them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from rlproof.read.names import Slot, says_new
from rlproof.read.outline.state import Input
from rlproof.read.parameters import of_bounds
from rlproof.read.targets import Parameter


def settled(
    parameters: Sequence[Parameter], inputs: Sequence[Input], body: Sequence[ast.stmt]
) -> list[Parameter]:
    """Of several new log-probs those that the script computes are new, those of a batch old."""
    found = list(parameters)
    new = [p for p in found if p.slot is Slot.NEW]
    if len(new) > 1:
        chosen = _current(new, {i.name: i for i in inputs}, body)
        has_old = any(p.slot is Slot.OLD for p in found)
        others = [p for p in new if p is not chosen]
        for other in others:
            slot = Slot.OLD if not has_old and len(others) == 1 else None
            found[found.index(other)] = replace(other, slot=slot)
    return [of_bounds(p, found) for p in found]


def _current(
    new: Sequence[Parameter], inputs: dict[str, Input], body: Sequence[ast.stmt]
) -> Parameter:
    """Which of several log-probs are those of the current policy."""
    named = [p for p in new if says_new(p.name)]
    if named:
        return named[0]
    left = _minuends(body)
    computed = [p for p in new if inputs[p.name].computed]
    for group in (computed, [p for p in new if p.name in left], new):
        if len(group) == 1:
            return group[0]
    first = [p for p in new if p.name in left]
    return (first or list(new))[0]


def _minuends(body: Sequence[ast.stmt]) -> set[str]:
    """Names on the left of a difference of two names."""
    return {
        node.left.id
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Sub)
        and isinstance(node.left, ast.Name)
    }
