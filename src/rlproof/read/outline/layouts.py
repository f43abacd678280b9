"""Sizes that a layout tells: `rewards.view(-1, X)` makes X the size of a group, under any name.

Shapes: P prompts, G group.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from rlproof.read.names import Slot, advantage_slot, words
from rlproof.read.outline.inputs import said
from rlproof.read.outline.syntax import path_of

_RESHAPES = {"view", "reshape"}
_PROMPTS = {"batch", "bs", "prompt", "prompts", "question", "questions", "groups", "b", "p"}
_TILING = {"repeat", "tile"}
_MODULES = {"torch", "np", "numpy", "jnp", "mx"}


def laid_out(body: Sequence[ast.AST], rewards: str | None = None) -> dict[str, Slot]:
    """Names of the size and the number of groups, from how rewards are laid out as (P, G).

    Args:
        body: statements, or a function.
        rewards: a name that holds them, where it does not say so itself.
    """
    found: dict[str, Slot] = {}
    for statement in body:
        for node in ast.walk(statement):
            shape = _shape_of_rewards(node, rewards)
            if shape is not None:
                found |= dict(_sizes(*shape))
    return found


def is_crossed(node: ast.AST) -> bool:
    """Whether rewards are laid out as (G, P): the members of a group are P rows apart."""
    shapes = [shape for inner in ast.walk(node) if (shape := _shape_of_rewards(inner))]
    return bool(shapes) and all(
        _is_size(first) and not _is_size(second) for first, second in shapes
    )


def tiles(tree: ast.AST) -> bool:
    """Whether prompts are repeated as a whole, `prompts.repeat(G, 1)`, and never in place."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    named = [(getattr(call.func, "attr", ""), call) for call in calls]
    whole = [c for name, c in named if name in _TILING and c.args and _is_size(c.args[0])]
    return bool(whole) and not any(name == "repeat_interleave" for name, _ in named)


def _is_size(node: ast.expr) -> bool:
    name = _last(node)
    return name is not None and advantage_slot(name) is Slot.GROUP_SIZE


def _shape_of_rewards(
    node: ast.AST, rewards: str | None = None
) -> tuple[ast.expr, ast.expr] | None:
    """The two sizes of a reshape of rewards."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    if node.func.attr not in _RESHAPES:
        return None
    base, sizes = node.func.value, list(node.args)
    if isinstance(base, ast.Name) and base.id in _MODULES and sizes:
        base, *sizes = sizes
    if len(sizes) == 1 and isinstance(sizes[0], ast.Tuple | ast.List):
        sizes = list(sizes[0].elts)
    if len(sizes) != 2 or not _are_rewards(base, rewards):
        return None
    return sizes[0], sizes[1]


def _are_rewards(node: ast.expr, rewards: str | None) -> bool:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    name = _last(node)
    if name is None:
        return False
    return name == rewards or said(name, advantage_slot) is Slot.REWARDS


def _sizes(groups: ast.expr, members: ast.expr) -> Iterator[tuple[str, Slot]]:
    """Slots of the names in a shape (P, G); a first size that is called a group's is (G, P)."""
    first, second = _last(groups), _last(members)
    if _is_size(groups) and not _is_size(members):
        first, second = second, first
    if second is not None:
        yield second, Slot.GROUP_SIZE
    counts = second is not None or (first is not None and set(words(first)) & _PROMPTS)
    if first is not None and first != second and counts:
        yield first, Slot.GROUPS


def _last(node: ast.expr) -> str | None:
    """The last name of an access path that is no size of an array itself."""
    path = path_of(node)
    return path.rpartition(".")[2] if path else None
