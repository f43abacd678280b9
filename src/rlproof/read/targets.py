"""What `read` hands on: functions with a role, and the slot of each of their parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from rlproof.read.names import Slot
from rlproof.read.source import Source

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


class Role(StrEnum):
    """The part a function plays in a training script."""

    ADVANTAGES = "advantages"
    LOSS = "loss"
    LOG_PROBS = "log-probs"
    CLIP_FRACTION = "clip-fraction"
    SHAPING = "reward-shaping"
    DIVERGENCE = "divergence-estimate"
    ENTROPY = "entropy"
    COMPLETION_MASK = "completion-mask"
    ROLLOUT = "rollout"
    NUMERIC_GRADIENT = "numeric-gradient"
    TRAIN = "train"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: its slot if known, whether a call must give it, and its default's source."""

    name: str
    slot: Slot | None
    required: bool
    default: ast.expr | None = None
    negative: bool = False
    """Whether its name says that it carries *negative* log-probs."""


@dataclass(frozen=True, slots=True)
class Target:
    """A module-level function of the script with a recognised role."""

    role: Role
    node: FunctionNode
    parameters: tuple[Parameter, ...]

    @property
    def name(self) -> str:
        """The function's name."""
        return self.node.name

    @property
    def doc(self) -> str:
        """The docstring, or an empty string."""
        return ast.get_docstring(self.node) or ""

    def parameter(self, slot: Slot) -> Parameter | None:
        """The first parameter that plays this part."""
        return next((p for p in self.parameters if p.slot is slot), None)

    def has(self, *slots: Slot) -> bool:
        """Whether every one of these parts is played by some parameter."""
        return all(self.parameter(slot) for slot in slots)


@dataclass(frozen=True, slots=True)
class Script:
    """One script read: its source, its targets, and what its comments declare."""

    source: Source
    targets: tuple[Target, ...]
    objective: str | None = None

    def of(self, role: Role) -> list[Target]:
        """The targets with this role, in source order."""
        return [target for target in self.targets if target.role is role]


def module_functions(tree: ast.Module) -> Iterator[FunctionNode]:
    """The functions defined at the top level; of several with one name the last one counts."""
    latest: dict[str, FunctionNode] = {}
    for node in tree.body:
        if isinstance(node, FunctionNode):
            latest[node.name] = node
    yield from latest.values()


def body_without_doc(node: FunctionNode) -> list[ast.stmt]:
    """The statements of a function, its docstring left out."""
    first = node.body[0]
    is_doc = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return node.body[1:] if is_doc else node.body
