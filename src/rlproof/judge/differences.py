"""Finite differences of a function whose gradient is known."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import numpy as np

from rlproof.faults.model import rounded
from rlproof.faults.seen import Place
from rlproof.read.landmarks import place
from rlproof.read.targets import Target

THETA = [[0.5, -0.5, 0.25, 0.0], [0.1, 0.2, 0.3, 0.4]]
"""Where the sum of (i + 1)·θᵢ² is differentiated."""
KINDS = ("quadratic", "raises")
"""The functions that are differentiated: the sum of squares, and one that raises."""
_SLACK = 0.1  # one-sided differences are off by 8·h at most
_ALIKE = 1e-3
_PUT_BACK = 1e-9  # what kept + h − h leaves is rounding


def facts(target: Target, theta: str, answer: dict[str, Any]) -> Iterator[tuple[Place, Any]]:
    """What one call says: of the gradient, and of the parameters afterwards."""
    after = answer["after"].get(theta)
    kept = _same_shape(after, THETA)
    if answer.get("error", {}).get("type") == "ArithmeticError":
        if kept and after != THETA:
            yield _heading(target), {"shifted": rounded(after[0][0], 8)}
        return
    if found := judge(answer.get("value")):
        yield _spot(target), {"differences": found}
    if kept and np.abs(np.array(after) - np.array(THETA)).max() > _PUT_BACK:
        yield _heading(target), {"mutated": [theta]}


def judge(got: Any) -> dict[str, Any] | None:
    """How a returned gradient differs from 2(i + 1)·θᵢ; None where it doesn't, or is none.

    An answer of another shape, or not of numbers, says nothing.
    """
    if not _same_shape(got, THETA):
        return None
    theta, found = np.array(THETA), np.array(got, dtype=float)
    exact = 2 * np.arange(1, theta.size + 1).reshape(theta.shape) * theta
    if not np.isfinite(found).all() or np.abs(found - exact).max() <= _SLACK:
        return None
    times = float((found * exact).sum() / (exact**2).sum())
    fits = np.abs(found - times * exact).max() <= _ALIKE * max(abs(times), 1) * _SLACK * 10
    return {
        "got": [rounded(float(x)) for x in found[0]],
        "exact": [rounded(float(x)) for x in exact[0]],
        "times": rounded(times) if fits else 0.0,
    }


def _spot(target: Target) -> Place:
    """The line of the difference: the last division, or the function where there is none."""
    divided = [n for n in ast.walk(target.node) if isinstance(n, ast.BinOp | ast.AugAssign)]
    quotients = [n for n in divided if isinstance(n.op, ast.Div)]
    return place(target.name, quotients[-1] if quotients else target.node)


def _heading(target: Target) -> Place:
    where = place(target.name, target.node)
    return Place(target.name, where.line, where.line, where.col, where.col + 4)


def _same_shape(one: Any, other: Any) -> bool:
    """Whether two nested lists of numbers have the same shape."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same_shape, one, other))
    return isinstance(one, int | float) and isinstance(other, int | float)
