"""An entropy bonus that is added to a loss, and has no gradient."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from rlproof.judge.source_said import Said, tell_at
from rlproof.read.landmarks import called, place
from rlproof.read.loop.events import switches_gradient_off
from rlproof.read.loop.passes import said
from rlproof.read.names import words
from rlproof.read.targets import FunctionNode, Script

_TUNED = re.compile(r"log_alpha|target_entropy|alpha_optim", re.IGNORECASE)
"""Words of a coefficient that is trained: its loss holds the entropy as a number."""
_BONUS = {"entropy", "entropies", "ent"}
_CUTS = {"detach", "stop_gradient", "item"}


def bonuses(script: Script) -> Iterator[Said]:
    """OBJ002: `loss = loss − c·H`, where H was made under no_grad or is detached.

    Only what is added to something called a loss counts: in an advantage the entropy is meant to
    be a number.
    """
    if _TUNED.search(script.source.text):
        return
    functions = [n for n in ast.walk(script.source.tree) if isinstance(n, FunctionNode)]
    quiet = {f.name for f in functions if switches_gradient_off(tuple(f.decorator_list))}
    for function in functions:
        if function.name in quiet:
            continue
        made = dict(_without_gradient(function, quiet))
        for node in ast.walk(function):
            if isinstance(node, ast.Assign | ast.AugAssign | ast.Return):
                yield from _added(function, node, made)


def _without_gradient(function: FunctionNode, quiet: set[str]) -> Iterator[tuple[str, ast.Assign]]:
    """Names of an entropy that are given a value once, where nothing is recorded."""
    inside = {
        id(inner)
        for node in ast.walk(function)
        if isinstance(node, ast.With)
        and switches_gradient_off(tuple(item.context_expr for item in node.items))
        for inner in ast.walk(node)
    }
    stores = [n.id for n in ast.walk(function)
              if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]  # fmt: skip
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if not set(words(name)) & _BONUS or stores.count(name) > 1:
                    continue
                cut = isinstance(value, ast.Call) and called(value) in _CUTS | quiet
                if id(node) in inside or cut:
                    yield name, node


def _added(function: FunctionNode, node: ast.stmt, made: dict[str, ast.Assign]) -> Iterator[Said]:
    """`loss = loss - c * entropy`, `loss -= c * entropy`, `return loss - c * entropy`."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp(op=op, right=term) as value):
            left: ast.expr = value.left
        case ast.AugAssign(target=ast.Name(id=name) as left, op=op, value=term):
            pass
        case ast.Return(value=ast.BinOp(left=ast.Name(id=name) as left, op=op, right=term)):
            pass
        case _:
            return
    parts = set(words(name)) & set(words(said(left)))
    if not isinstance(op, ast.Add | ast.Sub) or not parts & {"loss", "losses"}:
        return
    for used in _scaled(term):
        source = made.get(said(used))
        cut = isinstance(used, ast.Call) and set(words(said(used.func.value))) & _BONUS  # type: ignore[attr-defined]
        if source is None and not cut:
            continue
        where = source if source is not None else node
        yield tell_at(
            "OBJ002",
            place(function.name, where),
            where,
            "the entropy bonus is added to the loss and has no gradient: it changes the number "
            "that is logged and trains nothing",
            "a constant for the gradient",
            "an entropy through which the gradient flows",
            *([node] if where is not node else []),
        )


def _scaled(term: ast.expr) -> Iterator[ast.expr]:
    """The factors of `c * entropy`, a mean of it or a masked product, and a detached factor."""
    match term:
        case ast.BinOp(op=ast.Mult() | ast.Div(), left=left, right=right):
            yield from _scaled(left)
            yield from _scaled(right)
        case ast.Call(func=ast.Attribute(value=inner, attr="detach")):
            yield term
        case ast.Call(func=ast.Attribute(value=inner, attr="mean" | "sum")):
            yield from _scaled(inner)
        case ast.Call(args=[first, *_]):
            yield from _scaled(first)
        case ast.Name():
            yield term
