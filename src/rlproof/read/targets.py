"""What `read` hands on: functions with a role, and the slot of each of their parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
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
    RETURNS = "token-returns"
    PLACEMENT = "score-placement"
    WHITENING = "advantage-whitening"
    SUPERVISED = "supervised-loss"
    MEAN_LENGTH = "mean-length"
    GROUP_FILTER = "group-filter"
    REWARD = "reward"
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
class Origin:
    """Where an outlined function comes from, if it is no module-level function."""

    name: str
    """`Trainer.compute_loss`, or `train (inline loss, line 88)`."""
    entry: str
    """The name under which the child process finds it."""
    reason: str = ""
    """Why it can't be run, found while it was outlined."""
    whole: bool = True
    """Whether it is a function of the script, not a statement inside one."""
    chosen: bool = False
    """Whether a setting chose among formulas, so that a coefficient may belong to another one."""


@dataclass(frozen=True, slots=True)
class Target:
    """A function of the script with a recognised role; a method or statements outlined count."""

    role: Role
    node: FunctionNode
    parameters: tuple[Parameter, ...]
    origin: Origin | None = None

    @property
    def name(self) -> str:
        """The function's name, as a report says it."""
        return self.origin.name if self.origin else self.node.name

    @property
    def entry(self) -> str:
        """The name to call it by."""
        return self.origin.entry if self.origin else self.node.name

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
    imported: tuple[Target, ...] = ()
    """Functions of other files of the project, by the names that this script calls them."""
    homes: tuple[str, ...] = ()
    """The files that define them: they are judged there."""
    doubts: tuple[tuple[str, str], ...] = ()
    """What looks like a target and is none: its name, and what is missing or unclear."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """What the settings say of names, so that another version can be read like this one."""

    def of(self, role: Role) -> list[Target]:
        """The targets with this role, in source order."""
        return [target for target in self.targets if target.role is role]

    def parts(self, *roles: Role) -> list[Target]:
        """What plays one of these parts in a loop of this script, imported functions as well."""
        return [target for target in (*self.imported, *self.targets) if target.role in roles]


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
