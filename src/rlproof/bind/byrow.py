"""Log-probs of a rollout that a loss takes as one number a row: the sum or mean of its tokens.

Sequence-level losses often store only that: `(logps * mask).sum(1) - batch["old_logps"]`.

Shapes: B rows, T slots.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rlproof.faults.seen import Rows
from rlproof.read.names import Slot
from rlproof.read.targets import Target


@dataclass(frozen=True, slots=True)
class ByRow:
    """Which log-probs are given as (B,), and how they are made of tokens.

    They are the `sum` or the `mean` of the real ones, the `total` or the `average` of all slots.
    """

    slots: frozenset[Slot] = frozenset()
    how: str = "sum"
    mask: str = ""
    """The parameter with the mask that keeps or drops whole rows, (B,)."""

    def of(self, slot: Slot, values: Rows, mask: list[list[int]]) -> list[Any]:
        """The values (B, T) as they are, or one number a row (B,)."""
        if slot not in self.slots:
            return values
        whole = self.how in ("total", "average")
        found = []
        for row, real in zip(values, mask, strict=True):
            kept = [x for x, m in zip(row, real, strict=True) if m or whole]
            total = sum(kept)
            found.append(total if self.how in ("sum", "total") else total / max(len(kept), 1))
        return found


def by_rows(target: Target) -> Iterator[ByRow]:
    """Ways to try where nothing else fits, the likeliest first.

    A second mask that keeps or drops rows, the old log-probs by row, then the reference's too.
    """
    masks = [p for p in target.parameters if p.slot is Slot.MASK]
    if len(masks) > 1:
        yield from (ByRow(mask=p.name) for p in reversed(masks))
    old = frozenset({Slot.OLD}) if target.has(Slot.OLD) else frozenset()
    ref = frozenset({Slot.REF}) if target.has(Slot.REF) else frozenset()
    for how in _reductions(target.node):
        for slots in dict.fromkeys((old, old | ref, ref)):
            if slots:
                yield ByRow(slots, how)


def _reductions(node: ast.AST) -> list[str]:
    """Whether anything is summed or averaged at all, the likelier first."""
    called = {
        inner.func.attr if isinstance(inner.func, ast.Attribute) else getattr(inner.func, "id", "")
        for inner in ast.walk(node)
        if isinstance(inner, ast.Call)
    }
    return (
        ["sum", "mean", "total", "average"]
        if any("sum" in n or "mean" in n for n in called)
        else []
    )
