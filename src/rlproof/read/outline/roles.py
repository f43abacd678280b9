"""Parameters of outlined functions with their final slots: names, then how the code uses them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from rlproof.read.names import Slot, says_new, words
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
        old = set() if has_old else _olds(chosen.name, [p.name for p in others], body)
        for other in others:
            slot = Slot.OLD if other.name in old else None
            found[found.index(other)] = replace(other, slot=slot)
    return [of_bounds(p, found) for p in found]


def _current(
    new: Sequence[Parameter], inputs: dict[str, Input], body: Sequence[ast.stmt]
) -> Parameter:
    """Which of several log-probs are those of the current policy."""
    named = [p for p in new if says_new(p.name)]
    if named:
        clearly = [p for p in named if set(words(p.name)) & {"new", "current", "cur", "curr"}]
        return (clearly or named)[0]
    left = _minuends(body)
    computed = [p for p in new if inputs[p.name].computed]
    for group in (computed, [p for p in new if p.name in left], new):
        if len(group) == 1:
            return group[0]
    first = [p for p in new if p.name in left]
    return (first or list(new))[0]


def _olds(new: str, others: Sequence[str], body: Sequence[ast.stmt]) -> set[str]:
    """Which of the others are old: the only one, or the one that is taken from the new ones.

    So are those that are compared with that one only: another engine's, for a correction.
    """
    if len(others) == 1:
        return set(others)
    pairs = [
        (node.left.id, node.right.id)
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Sub)
        and isinstance(node.left, ast.Name)
        and isinstance(node.right, ast.Name)
    ]
    old = {right for left, right in pairs if left == new and right in others}
    if len(old) != 1:
        return set()
    found = set(old)
    for name in set(others) - old:
        uses = sum(isinstance(n, ast.Name) and n.id == name for s in body for n in ast.walk(s))
        if uses == sum({left, right} == {name, *old} for left, right in pairs):
            found.add(name)
    return found


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
