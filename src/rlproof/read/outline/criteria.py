"""Which statements produce advantages: those that centre rewards, the last of each chain."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from rlproof.read.names import Slot, advantage_slot, words
from rlproof.read.outline import regions
from rlproof.read.outline.inputs import is_selection
from rlproof.read.outline.regions import Definition, Region
from rlproof.read.outline.syntax import path_of, stored

_ADVANTAGE = {"adv", "advs", "advantage", "advantages"}
_MEANS = {"mean", "nanmean", "fmean", "average"}
_COPIES = {"clone", "detach", "to", "cpu", "cuda", "tolist", "repeat_interleave", "expand"}


def advantage_regions(body: Sequence[ast.stmt], definition: Definition | None) -> Iterator[Region]:
    """Regions of inline advantages in a function, or at the top level of a module."""
    last: dict[str, tuple[ast.Assign, ast.expr]] = {}
    centred: set[str] = set()
    for node in regions.own_statements(body):
        if not isinstance(node, ast.Assign | ast.AugAssign):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        name = targets[0].id if isinstance(targets[0], ast.Name) else None
        if name is None or len(targets) > 1:
            continue
        if says_advantages(name) or _centres(node.value, name):
            computes = isinstance(node, ast.AugAssign) or _computes(node.value)
            if computes:
                last[name] = (node, ast.Name(name, ast.Load()))  # type: ignore[assignment]
                centred.add(name)
    for name, (node, _) in last.items():
        last_step = _choice_around(body, node, name) or node
        way = regions.way_to(body, last_step)
        if way is None:
            continue
        value = ast.copy_location(ast.Name(name, ast.Load()), node)
        value.end_lineno, value.end_col_offset = node.end_lineno, node.end_col_offset
        place = definition.name if definition else "module"
        yield Region(
            f"{place} (inline advantages, line {node.lineno})",
            definition.node if definition else None,
            definition.owner if definition else None,
            (
                *(regions.start_of(definition) if definition else ()),
                *way[0],
                regions.Step("run", last_step, way[1]),
            ),
            value,
            node,
            way[1],
            False,
        )


def _choice_around(body: Sequence[ast.stmt], node: ast.stmt, name: str) -> ast.If | None:
    """The outermost `if` around a statement of which more than one branch makes the name."""
    for outer in regions.own_statements(body):
        if isinstance(outer, ast.If) and any(s is node for s in regions.own_statements([outer])):
            if all(_makes(branch, name) for branch in (outer.body, outer.orelse)):
                return outer
    return None


def _makes(body: Sequence[ast.stmt], name: str) -> bool:
    return any(
        isinstance(s, ast.Assign) and name in set(stored(s)) for s in regions.own_statements(body)
    )


def says_advantages(name: str) -> bool:
    """Whether a name speaks of advantages."""
    return bool(set(words(name)) & _ADVANTAGE)


def _computes(value: ast.expr) -> bool:
    """Whether this is more than a selection or a copy of something else."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr not in _COPIES:
            break
        value = value.func.value
    works = any(
        isinstance(n, ast.BinOp) and isinstance(n.op, ast.Sub | ast.Div) for n in ast.walk(value)
    )
    return works and not is_selection(value)


def _centres(value: ast.expr, name: str) -> bool:
    """`rewards - rewards.mean()` under the rewards' own name."""
    if advantage_slot(name) is not Slot.REWARDS and "normalized" not in words(name):
        return False
    for node in ast.walk(value):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            left = path_of(node.left)
            for inner in ast.walk(node.right):
                called = isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute)
                if called and inner.func.attr in _MEANS and left:  # type: ignore[attr-defined]
                    return True
    return False
