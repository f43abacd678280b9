"""A small function of known meaning: an entropy, a divergence estimate, a mask builder.

Shapes: B rows, T slots, V words.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import Any

from rlproof.bind.implementation import Implementation, Spec, UnbindableError, raise_for
from rlproof.bind.sandbox import Sandbox
from rlproof.faults.seen import ScriptError
from rlproof.read.gauges import entries, whitening_slot
from rlproof.read.names import Slot
from rlproof.read.targets import Parameter, Role, Script, Target

GAUGES = (
    Role.DIVERGENCE, Role.ENTROPY, Role.COMPLETION_MASK, Role.RETURNS, Role.PLACEMENT,
    Role.WHITENING, Role.SUPERVISED, Role.MEAN_LENGTH, Role.GROUP_FILTER,
)  # fmt: skip
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
_PLAINS: dict[Role, dict[str, Any]] = {
    Role.RETURNS: {Slot.REWARDS: [[0.0, 1.0]], Slot.MASK: [[1, 1]], Slot.DISCOUNT: 1.0},
    Role.PLACEMENT: {
        Slot.DIVERGENCES: [[0.0, 0.0], [0.0, 0.0]],
        Slot.REWARDS: [1.0, 1.0],
        Slot.MASK: [[1, 1], [1, 0]],
    },
    Role.WHITENING: {
        Slot.ADVANTAGES: [[1.0, -1.0], [2.0, 0.0]],
        Slot.MASK: [[1, 1], [1, 1]],
    },
    Role.SUPERVISED: {
        Slot.LOGITS: [[[0.0] * 4] * 3],
        Slot.TOKENS: [[3, 1, 2]],
        Slot.MASK: [[0, 1, 1]],
    },
    Role.MEAN_LENGTH: {Slot.MASK: [[1, 1], [1, 0]], Slot.TRUNCATED: [1, 0]},
    Role.GROUP_FILTER: {
        Slot.REWARDS: [0.0, 1.0, 0.0, 1.0],
        Slot.RESPONSES: ["a", "b", "c", "d"],
        Slot.GROUP_SIZE: 2,
    },
}
_AS_THEY_ARE = (Slot.EOS, Slot.PAD, Slot.DISCOUNT, Slot.RESPONSES, Slot.GROUP_SIZE)

_LOG_PROBS = (Slot.NEW, Slot.OLD, Slot.REF)


class GaugeImplementation(Implementation):
    """A function of values by slot: log-probs and masks (B, T), logits (B, T, V), tokens."""

    def __init__(self, script: Script, target: Target, sandbox: Sandbox) -> None:
        super().__init__(script, target, sandbox)
        self.peeled = 0
        """How many leading axes, of length 1 in every probe, the function does without."""
        reason, values = "", _PLAINS.get(target.role, _PLAIN)
        axes = (0,) if values is not _PLAIN else (0, 1) if target.has(Slot.MASK) else (0, 1, 2)
        for self.peeled in axes:
            try:
                self.settle(lambda: self._request(values), self._accepts)
            except UnbindableError as error:
                reason = reason or str(error)
            else:
                return
        raise UnbindableError(reason)

    def _accepts(self, answer: Spec) -> bool:
        if self.target.role is Role.GROUP_FILTER:  # which may leave nothing
            return isinstance(answer["value"], list)
        return _answers(answer["value"])

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
            elif parameter.slot is Slot.TENSORS:
                arguments[parameter.name] = self._tensors(parameter, values)
            elif parameter.required:
                raise UnbindableError(f"needs `{parameter.name}`, which no probe can give")
        return self.spec(arguments, "plain")

    def _tensors(self, parameter: Parameter, values: Mapping[str, Any]) -> list[Any]:
        """A table of tensors, with the entries that the function reads."""
        given = {}
        for key in entries(self.target.node, parameter.name):
            slot = whitening_slot(key)
            if slot is None or slot not in values:
                raise UnbindableError(f'needs {parameter.name}["{key}"], which no probe can give')
            kind = self.convention.mask_kind() if slot is Slot.MASK else self.convention.kind()
            given[key] = [kind, values[slot]]
        return ["tensors", given]

    def _argument(self, parameter: Parameter, value: Any) -> list[Any]:
        if parameter.slot in _AS_THEY_ARE:
            return ["raw", value]
        if parameter.slot is Slot.TRUNCATED:
            return [self.convention.kind("bool"), [bool(x) for x in value]]
        for _ in range(self.peeled):
            value = value[0]
        if parameter.slot in _LOG_PROBS and parameter.negative:
            value = _negated(value)
        if parameter.slot is Slot.TOKENS:
            return [self.convention.kind("int"), value]
        if parameter.slot is Slot.MASK:
            return [self.convention.mask_kind(), value]
        return [self.convention.kind(), value]


def empty_row(gauge: GaugeImplementation) -> str:
    """What a mean over rows gives where one row has no real token; empty unless it is NaN."""
    half = [[log(0.5), log(0.5)]] * 2
    values: dict[str, Any] = {
        Slot.NEW: half, Slot.OLD: half, Slot.REF: half, Slot.LOGITS: _EVEN * 2,
        Slot.MASK: [[1, 1], [0, 0]],
    }  # fmt: skip
    measures = gauge.target.role in (Role.ENTROPY, Role.DIVERGENCE)
    if not measures or gauge.peeled or not gauge.target.has(Slot.MASK):
        return ""
    try:
        got = gauge.run(values)
    except (ScriptError, UnbindableError):
        return ""
    return "nan" if isinstance(got, float) and got != got else ""


def _negated(value: Any) -> Any:
    return [_negated(item) for item in value] if isinstance(value, list) else -value


def _answers(value: Any) -> bool:
    """Whether what was returned is numbers, under keys too."""
    if isinstance(value, dict):
        return any(map(_answers, value.values()))
    return numbers(value) != []


def numbers(value: Any) -> list[float]:
    """All numbers of nested lists, truth values as 0 and 1; empty if anything else is in it."""
    if isinstance(value, int | float):
        return [float(value)]
    if not isinstance(value, list):
        return []
    inner = [numbers(item) for item in value]
    return [x for part in inner for x in part] if all(inner) else []
