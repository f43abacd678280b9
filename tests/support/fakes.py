"""A loss that is a point of the space: no script, no sandbox."""

from __future__ import annotations

from typing import Any

from rlproof.faults.seen import Answer, Batch, Point
from rlproof.judge.evaluate import evaluate
from rlproof.read.names import Slot

CLIPS = (Slot.CLIP, Slot.CLIP_LOW, Slot.CLIP_HIGH)


class PointLoss:
    """Answers probes as a `LossImplementation` would, from the closed form of a point."""

    def __init__(self, point: Point) -> None:
        self.point = point
        self.target = self

    def has(self, *slots: Slot) -> bool:
        if set(slots) & set(CLIPS):
            return self.point.get("clip_from") == "arguments"
        if Slot.BETA in slots:
            return self.point.get("beta_from") == "arguments"
        return Slot.LENGTHS not in slots

    masked = True

    def run(self, batch: Batch) -> Answer:
        return evaluate(self.point, batch)

    def many(self, batches: list[Batch]) -> list[Answer]:
        return [self.run(batch) for batch in batches]

    def raw(self, batch: Batch) -> dict[str, Any]:
        return {"value": self.run(batch).value, "mode": "closed form"}
