"""A function that puts a divergence into the rewards, on nested lists.

Shapes: B rows, T slots.
"""

from __future__ import annotations

from typing import Any

from rlproof.bind.implementation import Implementation, Spec, UnbindableError, raise_for
from rlproof.bind.sandbox import Sandbox
from rlproof.faults.seen import Batch
from rlproof.read.names import Slot
from rlproof.read.targets import Script, Target


class ShapingImplementation(Implementation):
    """Rewards (B,), log-probs and reference log-probs (B, T) to shaped rewards."""

    def __init__(self, script: Script, target: Target, sandbox: Sandbox) -> None:
        super().__init__(script, target, sandbox)
        rows = [[-1.0, -1.2, -0.9], [-0.8, -1.1, -1.3]]
        plain = Batch(rows, rows, rows, [1.0, 0.0], [[1, 1, 1], [1, 1, 0]], beta=1.0)
        self.settle(lambda: self._request(plain), lambda a: isinstance(a["value"], list))

    def run(self, batch: Batch) -> list[Any]:
        """Shaped rewards, (B,) or (B, T); `batch.advantages` stands for the rewards.

        Raises:
            ScriptError: the function raised.
        """
        value: list[Any] = raise_for(self.ask([self._request(batch)])[0])["value"]
        return value

    def _request(self, batch: Batch) -> Spec:
        kind = self.convention.kind()
        given: dict[Slot, list[Any]] = {
            Slot.REWARDS: [kind, batch.advantages],
            Slot.NEW: [kind, batch.new],
            Slot.OLD: [kind, batch.old],
            Slot.REF: [kind, batch.ref],
            Slot.MASK: [self.convention.mask_kind(), batch.mask],
            Slot.BETA: ["raw", batch.beta],
        }
        arguments = {p.name: given[p.slot] for p in self.target.parameters if p.slot in given}
        missing = [p.name for p in self.target.parameters if p.required and p.name not in arguments]
        if missing:
            raise UnbindableError(f"needs `{missing[0]}`, which no probe can give reward shaping")
        return self.spec(arguments, "plain")
