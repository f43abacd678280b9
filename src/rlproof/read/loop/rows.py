"""How many rows a micro-batch has: the width of the slices that one round of a loop takes.

Bounds are compared as polynomials in names, so that `slice(k * 2, (k + 1) * 2)` has two rows, and
`x[start : start + size]` has as many as `size` says.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.read.landmarks import called
from rlproof.read.loop.passes import Passes
from rlproof.read.loop.trace import Frame, Loop
from rlproof.read.loop.values import Values
from rlproof.read.names import words

Polynomial = dict[tuple[str, ...], float]
_DEEP = 8


def rows(values: Values, passes: Passes, micro: Loop) -> int | None:
    """Rows of one micro-batch, where the source fixes them.

    From a `range` with a step, `split` or a data loader; else from the slices inside of the loop,
    if all of them that move with it are equally wide.
    """
    if isinstance(micro, ast.While):
        return None
    for node in ast.walk(micro.iter):
        size: ast.expr | None = None
        match node:
            case ast.Call(func=ast.Name(id="range"), args=[_, _, step]):
                size = step
            case ast.Call(func=ast.Attribute(attr="split"), args=[step, *_]):
                size = step
            case ast.Call(keywords=keywords) if called(node) == "DataLoader":
                size = next((k.value for k in keywords if k.arg == "batch_size"), None)
        fixed = values.number(size)
        if fixed is not None and isinstance(fixed.value, int) and not isinstance(fixed.value, bool):
            return fixed.value
    found = {
        _width(values, passes, frame, low, high) for frame, low, high in _slices(passes, micro)
    }
    (one,) = found if len(found) == 1 else (None,)
    return one


def groups_of(passes: Passes, micro: Loop) -> ast.Call | None:
    """Where one round of a loop cuts its own rewards into groups, so that it has several rows.

    `rewards.view(-1, group_size)`: a group of one member has no advantage, so each has two.
    """
    for step in passes.trace.steps:
        for call in step.calls() if step.inside(micro) else ():
            match call:
                case ast.Call(
                    func=ast.Attribute(value=on, attr="view" | "reshape"),
                    args=[ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1)), size],
                ):
                    named = set(words(ast.unparse(on).split(".")[-1]))
                    made = isinstance(on, ast.Name) and any(
                        s.inside(micro)
                        for s, _ in passes.assigned.of(step.frame.key(on) or (0, ""))
                    )
                    one = isinstance(size, ast.Constant) and size.value == 1
                    if made and named & {"reward", "rewards", "scores", "returns"} and not one:
                        return call
    return None


def _slices(passes: Passes, micro: Loop) -> Iterator[tuple[Frame, ast.expr, ast.expr]]:
    """The bounds of rows, in the first dimension, that are taken inside of a loop."""
    for step in passes.trace.steps:
        for node in step.walk() if step.inside(micro) else ():
            cut = node.slice if isinstance(node, ast.Subscript) else node
            if isinstance(cut, ast.Tuple) and isinstance(node, ast.Subscript):
                cut = cut.elts[0]
            match cut:
                case ast.Call(func=ast.Name(id="slice"), args=[low, high]):
                    yield step.frame, low, high
                case ast.Slice(lower=ast.expr() as low, upper=ast.expr() as high):
                    if isinstance(node, ast.Subscript):
                        yield step.frame, low, high


def _width(
    values: Values, passes: Passes, frame: Frame, low: ast.expr, high: ast.expr
) -> int | None:
    """high − low, where that is a number."""
    try:
        first, last = (_expand(values, passes, frame, node, 0) for node in (low, high))
    except ValueError:
        return None
    left = {key: last.get(key, 0.0) - first.get(key, 0.0) for key in {*first, *last}}
    size = left.pop((), 0.0)
    if any(left.values()) or size != int(size) or not any(first):
        return None
    return int(size)


def _expand(values: Values, passes: Passes, frame: Frame, node: ast.expr, depth: int) -> Polynomial:
    """An expression as a sum of products of names.

    Raises:
        ValueError: it has other operations in it.
    """
    if depth > _DEEP:
        raise ValueError("nested too deeply")
    fixed = values.number(node)
    if fixed is not None and isinstance(fixed.value, int | float):
        return {(): float(fixed.value)}
    match node:
        case ast.BinOp(op=op, left=left, right=right):
            one, other = (_expand(values, passes, frame, n, depth + 1) for n in (left, right))
            return _combined(op, one, other)
        case ast.Name():
            key = frame.key(node)
            written = passes.assigned.of(key) if key else []
            step, value = written[0] if len(written) == 1 else (None, None)
            if step is not None and isinstance(value, ast.BinOp):
                return _expand(values, passes, step.frame, value, depth + 1)
            return {(node.id,): 1.0}
        case ast.Attribute():
            return {(ast.unparse(node),): 1.0}
    raise ValueError("neither a name nor arithmetic")


def _combined(op: ast.operator, one: Polynomial, other: Polynomial) -> Polynomial:
    found: Polynomial = {}
    match op:
        case ast.Add() | ast.Sub():
            sign = 1.0 if isinstance(op, ast.Add) else -1.0
            return {k: one.get(k, 0.0) + sign * other.get(k, 0.0) for k in {*one, *other}}
        case ast.Mult():
            for a, x in one.items():
                for b, y in other.items():
                    key = tuple(sorted((*a, *b)))
                    found[key] = found.get(key, 0.0) + x * y
            return found
    raise ValueError("another operation")
