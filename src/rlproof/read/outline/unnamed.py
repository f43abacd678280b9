"""Roles of variables whose names say nothing: by docstrings, annotations, the shape of the code."""

from __future__ import annotations

import ast

from rlproof.read.descriptions import described
from rlproof.read.landmarks import called
from rlproof.read.names import Slot, objective_slot
from rlproof.read.outline import regions
from rlproof.read.shape import local_slots
from rlproof.read.targets import FunctionNode

_POLICIES = (Slot.NEW, Slot.OLD, Slot.REF)


def unnamed_roles(node: FunctionNode) -> dict[str, Slot]:
    """Roles in one function; the shape counts only where no name speaks of a policy."""
    found = described(node, objective_slot)
    slots = {objective_slot(name) for name in regions.names_in(node)} | set(found.values())
    if not slots & set(_POLICIES):
        shaped = local_slots(node)
        found |= {name: slot for name, slot in shaped.items() if objective_slot(name) is None}
    return found


def may_have_roles(tree: ast.Module) -> bool:
    """Whether anything in a file could be a ratio, or is described as log-probs."""
    return any(
        (isinstance(node, ast.Call) and called(node) == "exp")
        or (isinstance(node, ast.Constant) and isinstance(node.value, str) and "log" in node.value)
        for node in ast.walk(tree)
    )
