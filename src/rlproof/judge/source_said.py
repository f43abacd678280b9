"""What a question to the source may answer: a fault, or why it can't be told."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from rlproof.faults.model import Evidence, Severity, Sighting
from rlproof.faults.seen import Place
from rlproof.judge.findings import Skipped
from rlproof.read.landmarks import place
from rlproof.read.loop.trace import Step

_WIDEST = 72


@dataclass(frozen=True, slots=True)
class Told:
    """One fault, by its code."""

    code: str
    sighting: Sighting


Said = Told | Skipped


def tell(
    code: str,
    step: Step,
    message: str,
    got: str,
    expected: str,
    *others: ast.AST,
    severity: Severity | None = None,
) -> Told:
    """A fault at a statement, with the other places that it contradicts."""
    where = place(step.frame.title, step.node)
    return Told(code, Sighting(where, message, shown(step.node, got, expected, *others), severity))


def tell_at(
    code: str, where: Place, node: ast.AST, message: str, got: str, expected: str, *others: ast.AST
) -> Told:
    """A fault at any node."""
    return Told(code, Sighting(where, message, shown(node, got, expected, *others)))


def shown(node: ast.AST, got: str, expected: str, *others: ast.AST) -> Evidence:
    """The lines of the source that contradict each other."""
    lines = [f"line {getattr(n, 'lineno', 0)}: {brief(n)}" for n in (node, *others)]
    return Evidence("source, " + "; ".join(lines), got, expected)


def brief(node: ast.AST) -> str:
    """A statement on one line; of a compound one its head."""
    text = " ".join(ast.unparse(node).split("\n")[0].split())
    return f"`{text if len(text) <= _WIDEST else text[: _WIDEST - 1] + '…'}`"


def undecided(code: str, step: Step, reason: str) -> Skipped:
    """A check that a setting or a condition decides."""
    line = step.node.lineno
    return Skipped(f"{code} in {step.frame.title} from source", f"line {line}: {reason}")
