"""A rehearsal asked of the sandbox, and its answer as typed records.

Shapes: B rows, L slots of a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rlproof.bind.implementation import UnbindableError
from rlproof.bind.sandbox import ChildDiedError, Sandbox

PROMPT, COMPLETION, EOS = 5, 16, 2
"""Slots of a prompt and of a completion, and the id that ends one, on the stage."""
Rows = list[list[float]]


@dataclass(frozen=True, slots=True)
class Pass:
    """One forward pass of the policy that was differentiated: rows (B, L)."""

    rows: list[int]
    """Which row of the batch each is; −1 for a sampled one."""
    born: list[int]
    """The step before which it was sampled or handed out."""
    step: int
    """How many steps were made before."""
    logps: Rows
    gradient: Rows
    """Derivatives of what was differentiated by the log-prob of each token."""
    touched: bool
    rewards: list[float | None]
    scored: list[tuple[int, int, int, float, float, bool]]
    """Row, slot of the completion, a word, and its share among the words that were not drawn:
    as the gradient has it, and as it was when the token was drawn; whether the gradient's shares
    are a softmax's at some temperature."""
    ids: list[list[int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an optimizer, or a loss that was handed back and differentiated."""

    gradient: list[float]
    """Along some random directions of the policy's parameters."""
    size: float
    passes: int
    """How many passes there were before it."""
    changed: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """What one run did."""

    ended: str
    """`returned`, `enough`, `raised` by the script, or `refused` for what the stage lacks."""
    reason: str
    passes: list[Pass]
    steps: list[Step]
    used: frozenset[str]
    losses: list[Mapping[str, Any]]
    value: Any = None
    columns: Mapping[str, Any] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether it came to its end, or to as much of it as was wanted."""
        return self.ended in ("returned", "enough")


@dataclass(frozen=True, slots=True)
class Stage:
    """The calls of one rehearsal."""

    sandbox: Sandbox
    calls: tuple[str, ...]
    uses: Mapping[str, Any]
    watch: tuple[str, ...] = ()

    def run(self, settings: Mapping[str, Any]) -> Run:
        """Make the calls once.

        Raises:
            UnbindableError: the process hung or died.
        """
        request = {
            "calls": list(self.calls),
            "settings": dict(settings),
            "uses": self.uses,
            "watch": list(self.watch),
        }
        try:
            answer = self.sandbox.rehearse(request)
        except ChildDiedError as error:
            raise UnbindableError(str(error)) from None
        raised = answer.get("error") or {}
        said = f"{raised.get('type')}: {raised.get('message')}" if raised else ""
        if raised.get("line"):
            said += f" in line {raised['line']}"
        return Run(
            answer["ended"],
            answer.get("reason", said),
            [Pass(**p) for p in answer["passes"]],
            [Step(**s) for s in answer["steps"]],
            frozenset(answer["used"]),
            answer.get("losses", []),
            answer.get("value"),
            answer.get("columns", {}),
        )
