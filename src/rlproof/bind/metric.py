"""A clip-fraction metric on nested lists. Shapes: B rows, T slots."""

from __future__ import annotations

from typing import Any

from rlproof.bind.implementation import Implementation, Spec, UnbindableError, raise_for
from rlproof.bind.sandbox import Sandbox
from rlproof.faults.seen import Rows
from rlproof.read.names import Slot
from rlproof.read.targets import Script, Target


class MetricImplementation(Implementation):
    """A clip fraction on nested lists."""

    def __init__(self, script: Script, target: Target, sandbox: Sandbox) -> None:
        super().__init__(script, target, sandbox)
        self.settle(
            lambda: self._request([[-1.0, -1.0]], [[-1.0, -1.1]], [[1, 1]], None), _is_number
        )

    def run(
        self,
        new: Rows,
        old: Rows,
        mask: list[list[int]],
        eps: float | None,
        advantage: float = 1.0,
    ) -> float:
        """The metric's value; all tokens have the one advantage, where it takes any.

        Raises:
            ScriptError: the function raised.
        """
        answer = raise_for(self.ask([self._request(new, old, mask, eps, advantage)])[0])
        return float(answer["value"])

    def _request(
        self,
        new: Rows,
        old: Rows,
        mask: list[list[int]],
        eps: float | None,
        advantage: float = 1.0,
    ) -> Spec:
        kind = self.convention.kind()
        each: Any = [advantage] * len(mask)
        if self.convention.advantages != "row":
            repeat = len(mask[0]) if self.convention.advantages == "token" else 1
            each = [[advantage] * repeat for _ in mask]
        given: dict[Slot, list[Any] | None] = {
            Slot.NEW: [kind, new],
            Slot.OLD: [kind, old],
            Slot.MASK: [self.convention.mask_kind(), mask],
            Slot.ADVANTAGES: [kind, each],
        }
        for slot in (Slot.CLIP, Slot.CLIP_LOW, Slot.CLIP_HIGH):
            given[slot] = None if eps is None else ["raw", eps]
        arguments: dict[str, list[Any]] = {}
        for parameter in self.target.parameters:
            value = given.get(parameter.slot) if parameter.slot else None
            if value is not None:
                arguments[parameter.name] = value
            elif parameter.required and parameter.slot in given:
                arguments[parameter.name] = ["raw", 0.2]
            elif parameter.required:
                raise UnbindableError(f"needs `{parameter.name}`, which no probe can give a metric")
        return self.spec(arguments, "scalar")


def _is_number(answer: Spec) -> bool:
    value = answer["value"]
    return isinstance(value, int | float) and value == value
