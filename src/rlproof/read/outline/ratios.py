"""Losses that are given π_new / π_old, or its logarithm, instead of two log-probs.

The outlined function computes the ratio from log-probs that it takes instead, so that probes
can move the policy and gradients flow.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from rlproof.read.names import Slot, words
from rlproof.read.outline.state import Input

_E = "2.718281828459045"  # a power of it works on arrays of every library


def written_out(
    found: Sequence[Input], body: Sequence[ast.stmt]
) -> tuple[list[Input], list[ast.stmt]]:
    """The inputs with log-probs for ratios, and the statements that compute the ratios.

    Beside old log-probs a ratio is that of another correction, and 1 without effect.
    """
    given = [i for i in found if i.slot in (Slot.RATIO, Slot.LOG_RATIO)]
    rest = [i for i in found if i not in given]
    if not given:
        return rest, []
    if any(i.slot is Slot.OLD for i in rest):
        weights = [replace(i, slot=Slot.WEIGHTS) for i in given if i.slot is Slot.RATIO]
        return [*rest, *weights], []
    new = next((i for i in rest if i.slot is Slot.NEW), None)
    taken = {i.name for i in found} | {
        n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name)
    }
    first = given[0]
    news = [] if new else [replace(first, name=_free("new_logps", taken), slot=Slot.NEW)]
    minuend = new or news[0]
    old = replace(first, name=_free("old_logps", taken), slot=Slot.OLD)
    made = [ast.parse(_text(i, minuend.name, old.name, body)).body[0] for i in given]
    return [*news, *rest, old], made


def _text(found: Input, new: str, old: str, body: Sequence[ast.stmt]) -> str:
    if found.slot is Slot.RATIO:
        return f"{found.name} = {_E} ** ({new} - {old})"
    turned = "kl" in words(found.name) and _is_negated(found.name, body)
    return f"{found.name} = {old} - {new}" if turned else f"{found.name} = {new} - {old}"


def _is_negated(name: str, body: Sequence[ast.stmt]) -> bool:
    """Whether the ratio is e to the minus of it: then it is old − new, an estimate of the KL."""
    return any(
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Name)
        and node.operand.id == name
        for statement in body
        for node in ast.walk(statement)
    )


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name = f"_{name}"
    return name
