"""Where losses and advantages are written: functions, methods, closures and statements in loops.

A region is the way from the outermost statement to the one that has the loss, as steps: enter a
function, run a statement, take one turn of a loop.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from rlproof.read.outline.syntax import Functions, stored

_BACKWARD = {"backward", "manual_backward", "minimize"}
_LOOPS = ast.For | ast.AsyncFor | ast.While


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the way: `init`, `enter` (functions), `turn` (a loop's head) or `run`."""

    kind: str
    node: ast.stmt
    depth: int = 0
    """How many loops are around it."""


@dataclass(frozen=True, slots=True)
class Region:
    """A place with a value that may be a loss or advantages."""

    name: str
    home: ast.FunctionDef | ast.AsyncFunctionDef | None
    owner: str | None
    steps: tuple[Step, ...]
    value: ast.expr | None = None
    """The expression in question; without one it is what the last function returns."""
    statement: ast.stmt | None = None
    depth: int = 0
    whole: bool = True
    """Whether it is a function by itself, not a statement inside one."""
    rewards: str = ""
    """The variable that inline advantages centre."""
    computed: tuple[ast.expr, ...] = ()
    """What is assigned to the value in question: never something that the region is given."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A function of a file, the class it is in, and the way to it."""

    node: ast.FunctionDef | ast.AsyncFunctionDef
    owner: str | None
    init: ast.FunctionDef | ast.AsyncFunctionDef | None
    outer: tuple[Step, ...] = ()
    name: str = ""
    nested: list[ast.stmt] = field(default_factory=list)


def definitions(tree: ast.Module) -> Iterator[Definition]:
    """Every function of a file, nested ones after those around them."""
    classes = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)}
    for node in tree.body:
        yield from _inside(node, None, (), "", classes)


def _inside(
    node: ast.stmt,
    owner: str | None,
    outer: tuple[Step, ...],
    prefix: str,
    classes: dict[str, ast.ClassDef],
) -> Iterator[Definition]:
    if isinstance(node, ast.ClassDef):
        for inner in node.body:
            yield from _inside(inner, node.name, outer, f"{prefix}{node.name}.", classes)
        return
    if not isinstance(node, Functions):
        for block in blocks(node):
            for inner in block:
                yield from _inside(inner, owner, outer, prefix, classes)
        return
    init = _init(owner, classes) if owner and node.name != "__init__" else None
    name = f"{prefix}{node.name}"
    yield Definition(node, owner, init, outer, name)
    start = (*outer, *([Step("init", init)] if init else []), Step("enter", node))
    for inner, way in _nested(node.body, 0):
        steps = (*start, *way)
        yield from _inside(inner, None if owner is None else owner, steps, f"{name}.", classes)


def _nested(body: Sequence[ast.stmt], depth: int) -> Iterator[tuple[ast.stmt, tuple[Step, ...]]]:
    """Functions defined inside statements, with the way to them."""
    for index, node in enumerate(body):
        if isinstance(node, Functions):
            yield node, tuple(Step("run", s, depth) for s in body[:index])
            continue
        for block in blocks(node):
            for inner, way in _nested(block, depth + isinstance(node, _LOOPS)):
                before = [Step("run", s, depth) for s in body[:index]]
                head = [Step("turn", node, depth + 1)] if isinstance(node, _LOOPS) else []
                yield inner, (*before, *head, *way)


def _init(
    owner: str, classes: dict[str, ast.ClassDef], depth: int = 0
) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    node = classes.get(owner)
    if node is None or depth > 8:
        return None
    for inner in node.body:
        if isinstance(inner, Functions) and inner.name == "__init__":
            return inner
    for base in node.bases:
        name = base.id if isinstance(base, ast.Name) else ""
        if name != owner and (found := _init(name, classes, depth + 1)):
            return found
    return None


def blocks(node: ast.stmt) -> list[list[ast.stmt]]:
    """The blocks of statements right inside a compound statement."""
    found = [getattr(node, name, None) for name in ("body", "orelse", "finalbody")]
    found += [h.body for h in getattr(node, "handlers", [])]
    found += [c.body for c in getattr(node, "cases", [])]
    return [block for block in found if isinstance(block, list) and block]


def way_to(
    body: Sequence[ast.stmt], wanted: ast.stmt, depth: int = 0
) -> tuple[tuple[Step, ...], int] | None:
    """The steps before a statement, through the compound statements around it, and its depth."""
    for index, node in enumerate(body):
        before = tuple(Step("run", s, depth) for s in body[:index])
        if node is wanted:
            return before, depth
        if isinstance(node, Functions | ast.ClassDef):
            continue
        for block in blocks(node):
            inner = way_to(block, wanted, depth + isinstance(node, _LOOPS))
            if inner is not None:
                head = (Step("turn", node, depth + 1),) if isinstance(node, _LOOPS) else ()
                return (*before, *head, *inner[0]), inner[1]
    return None


def from_rewards(region: Region) -> Iterator[Region]:
    """The region, then the same from later and later rewards on: what makes them is left out."""
    yield region
    makes = [
        step
        for step in region.steps[:-1]
        if step.kind == "run" and region.rewards in {*stored(step.node), *_filled(step.node)}
    ]
    for last in range(1, len(makes) + 1 if region.rewards else 1):
        left = makes[:last]
        yield replace(region, steps=tuple(s for s in region.steps if s not in left))


def _filled(node: ast.stmt) -> Iterator[str]:
    """Lists that a statement puts something into."""
    for inner in ast.walk(node):
        match inner:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append" | "extend")):
                yield name


def start_of(definition: Definition) -> tuple[Step, ...]:
    """The steps into a function."""
    init = (Step("init", definition.init),) if definition.init else ()
    inside = any(s.kind == "init" for s in definition.outer)
    return (*definition.outer, *(() if inside else init), Step("enter", definition.node))


def of_returns(definition: Definition) -> Region | None:
    """The region of what a function returns."""
    returns = [n for n in own_nodes(definition.node.body) if isinstance(n, ast.Return) and n.value]
    if not returns:
        return None
    body = tuple(Step("run", s) for s in definition.node.body)
    return Region(
        definition.name, definition.node, definition.owner, (*start_of(definition), *body)
    )


def backward_calls(body: Sequence[ast.stmt]) -> Iterator[tuple[ast.stmt, ast.expr]]:
    """Statements that differentiate a loss, with the expression of the loss."""
    for node in own_statements(body):
        for inner in _shallow(node):
            if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
                if inner.func.attr in _BACKWARD:
                    loss = _differentiated(inner)
                    if loss is not None:
                        yield node, loss


def _differentiated(call: ast.Call) -> ast.expr | None:
    assert isinstance(call.func, ast.Attribute)
    subject = call.args[0] if call.args else call.func.value
    if not call.args and call.func.attr != "backward":
        return None
    while isinstance(subject, ast.Call) and isinstance(subject.func, ast.Attribute):
        if subject.func.attr != "scale" or not subject.args:  # a gradient scaler
            break
        subject = subject.args[0]
    return subject


def own_statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements of a function, at any depth, those of nested functions left out."""
    for node in body:
        yield node
        if not isinstance(node, Functions | ast.ClassDef):
            for block in blocks(node):
                yield from own_statements(block)


def own_nodes(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """All nodes of a function, those of nested functions left out."""
    for statement in own_statements(body):
        yield statement
        yield from _shallow(statement)


def _shallow(node: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of one statement, without the statements inside it."""
    left: list[ast.AST] = [
        c for c in ast.iter_child_nodes(node) if not isinstance(c, ast.stmt | ast.ExceptHandler)
    ]
    if isinstance(node, Functions | ast.ClassDef):
        return
    while left:
        inner = left.pop()
        yield inner
        if not isinstance(inner, ast.Lambda | ast.match_case):
            left += [c for c in ast.iter_child_nodes(inner) if not isinstance(c, ast.stmt)]


def names_in(node: ast.AST) -> set[str]:
    """Names, attributes, keys and parameters that appear anywhere in a node."""
    found: set[str] = set()
    for inner in ast.walk(node):
        match inner:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                found.add(name)
            case ast.Constant(value=str(text)) if len(text) < 40:
                found.add(text)
    return found


__all__ = ["Definition", "Region", "Step", "definitions", "stored"]
