"""A small function of known meaning: an entropy, a divergence estimate, a mask builder.

Shapes: B rows, T slots, V words.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import Any

from rlproof.bind.implementation import Implementation, Spec, UnbindableError, raise_for
from rlproof.bind.sandbox import Sandbox
from rlproof.read.names import Slot
from rlproof.read.targets import Parameter, Role, Script, Target

GAUGES = (Role.DIVERGENCE, Role.ENTROPY, Role.COMPLETION_MASK)
_EVEN = [[[0.0] * 4] * 2]
_PLAIN: dict[str, Any] = {
    Slot.NEW: [[log(0.5), log(0.5)]],
    Slot.OLD: [[log(0.5), log(0.5)]],
    Slot.REF: [[log(0.5), log(0.5)]],
    Slot.LOGITS: _EVEN,
    Slot.MASK: [[1, 1]],
    Slot.TOKENS: [[5, 2]],
    Slot.EOS: 2,
    Slot.PAD: 0,
}


_LOG_PROBS = (Slot.NEW, Slot.OLD, Slot.REF)


class GaugeImplementation(Implementation):
    """A function of values by slot: log-probs and masks (B, T), logits (B, T, V), tokens."""

    def __init__(self, script: Script, target: Target, sandbox: Sandbox) -> None:
        super().__init__(script, target, sandbox)
        self.peeled = 0
        """How many leading axes, of length 1 in every probe, the function does without."""
        reason = ""
        for self.peeled in (0, 1) if target.has(Slot.MASK) else (0, 1, 2):
            try:
                self.settle(lambda: self._request(_PLAIN), lambda a: numbers(a["value"]) != [])
            except UnbindableError as error:
                reason = reason or str(error)
            else:
                return
        raise UnbindableError(reason)

    def run(self, values: Mapping[str, Any]) -> Any:
        """What the function returns, as plain lists.

        Raises:
            ScriptError: the function raised.
        """
        return raise_for(self.ask([self._request(values)])[0])["value"]

    def _request(self, values: Mapping[str, Any]) -> Spec:
        arguments: dict[str, list[Any]] = {}
        for parameter in self.target.parameters:
            if parameter.slot is not None and parameter.slot in values:
                arguments[parameter.name] = self._argument(parameter, values[parameter.slot])
            elif parameter.required:
                raise UnbindableError(f"needs `{parameter.name}`, which no probe can give")
        return self.spec(arguments, "plain")

    def _argument(self, parameter: Parameter, value: Any) -> list[Any]:
        if parameter.slot in (Slot.EOS, Slot.PAD):
            return ["raw", value]
        for _ in range(self.peeled):
            value = value[0]
        if parameter.slot in _LOG_PROBS and parameter.negative:
            value = _negated(value)
        if parameter.slot is Slot.TOKENS:
            return [self.convention.kind("int"), value]
        if parameter.slot is Slot.MASK:
            return [self.convention.mask_kind(), value]
        return [self.convention.kind(), value]


def _negated(value: Any) -> Any:
    return [_negated(item) for item in value] if isinstance(value, list) else -value


def numbers(value: Any) -> list[float]:
    """All numbers of nested lists, truth values as 0 and 1; empty if anything else is in it."""
    if isinstance(value, int | float):
        return [float(value)]
    if not isinstance(value, list):
        return []
    inner = [numbers(item) for item in value]
    return [x for part in inner for x in part] if all(inner) else []
