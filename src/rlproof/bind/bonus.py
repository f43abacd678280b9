"""A loss with an entropy bonus: its coefficient, and what the entropy is made of.

Shapes: B rows, T slots, V words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import log
from typing import Any

from rlproof.bind.implementation import Implementation, Spec, UnbindableError, raise_for
from rlproof.bind.sandbox import Sandbox
from rlproof.faults.model import first_number
from rlproof.read.names import Slot, is_logp, objective_slot, token_slot, words
from rlproof.read.targets import FunctionNode, Parameter, Role, Script, Target

_ENTROPY = {"entropy", "entropies", "ent"}
_COEFFICIENT = {"coef", "coeff", "coefficient", "weight", "beta", "alpha", "bonus", "scale", "c"}
_LOGITS = [[[0.9, -0.4, 0.2, 0.0], [0.1, 0.5, -0.7, 0.3], [1.1, 0.0, 0.4, -0.2]],
           [[-0.3, 0.8, 0.0, 0.6], [0.7, 0.2, -0.1, 0.0], [0.0, 0.4, 0.9, -0.5]]]  # fmt: skip
_ENTROPIES = [[1.1, 0.7, 0.9], [0.4, 1.2, 0.8]]
_TOKENS = [[0, 3, 1], [2, 0, 1]]
_ROWS = [[log(0.3), log(0.4), log(0.2)], [log(0.5), log(0.25), log(0.35)]]
_MASK = [[1, 1, 1], [1, 1, 0]]
COEFFICIENT = 0.5


def targets(script: Script, functions: Iterator[FunctionNode]) -> Iterator[Target]:
    """Functions that take advantages, a coefficient of the entropy, and what it is made of."""
    for node in functions:
        args = [*node.args.posonlyargs, *node.args.args]
        first = len(args) - len(node.args.defaults)
        found = tuple(
            Parameter(arg.arg, _slot(arg.arg), place < first) for place, arg in enumerate(args)
        )
        target = Target(Role.LOSS, node, found)
        source = target.has(Slot.LOGITS, Slot.TOKENS) or target.has(Slot.DIVERGENCES)
        if target.has(Slot.ADVANTAGES, Slot.WEIGHTS) and source and "torch" in script.source.text:
            yield target


def _slot(name: str) -> Slot | None:
    """`WEIGHTS` for the coefficient of the bonus, `DIVERGENCES` for entropies that are given."""
    parts = set(words(name))
    if parts & _ENTROPY:
        return Slot.WEIGHTS if parts & _COEFFICIENT else Slot.DIVERGENCES
    return objective_slot(name) if is_logp(name) else token_slot(name) or objective_slot(name)


class BonusImplementation(Implementation):
    """Value, and gradient by logits or entropies, at a coefficient of the bonus."""

    def __init__(self, script: Script, target: Target, sandbox: Sandbox) -> None:
        super().__init__(script, target, sandbox)
        self.source = Slot.LOGITS if target.has(Slot.LOGITS) else Slot.DIVERGENCES
        self.start: Any = _LOGITS if self.source is Slot.LOGITS else _ENTROPIES
        self.settle(lambda: self._request(self.start, COEFFICIENT), _is_number)

    def bonus(self) -> tuple[float, float]:
        """∂bonus/∂x of the first entry: as autograd has it, and by central differences.

        The bonus is what the loss with the coefficient has more than the loss without it.

        Raises:
            ScriptError: the function raised.
        """
        with_it, without = (self._answer(self.start, c) for c in (COEFFICIENT, 0.0))
        step = 0.02  # the loss may be in float32, where 1e-7/0.02 is small enough
        ends = []
        for shift in (step, -step):
            moved = _moved(self.start, shift)
            ends.append(
                self._answer(moved, COEFFICIENT)["value"] - self._answer(moved, 0.0)["value"]
            )
        slope = first_number(with_it["gradient"]) - first_number(without["gradient"])
        return slope, (ends[0] - ends[1]) / (2 * step)

    def _answer(self, values: Any, coefficient: float) -> Spec:
        return raise_for(self.ask([self._request(values, coefficient)])[0])

    def _request(self, values: Any, coefficient: float) -> Spec:
        kind, leaf = self.convention.kind(), ""
        given: dict[Slot, Callable[[], list[Any]]] = {
            self.source: lambda: [kind, values],
            Slot.TOKENS: lambda: [self.convention.kind("int"), _TOKENS],
            Slot.NEW: lambda: [kind, _ROWS],
            Slot.OLD: lambda: [kind, _ROWS],
            Slot.REF: lambda: [kind, _ROWS],
            Slot.ADVANTAGES: self._advantages,
            Slot.MASK: lambda: [self.convention.mask_kind(), _MASK],
            Slot.WEIGHTS: lambda: ["raw", coefficient],
        }
        arguments: dict[str, list[Any]] = {}
        for parameter in self.target.parameters:
            if parameter.slot in given:
                arguments[parameter.name] = given[parameter.slot]()
                leaf = parameter.name if parameter.slot is self.source else leaf
            elif parameter.required and parameter.slot in _NUMBERS:
                arguments[parameter.name] = ["raw", _NUMBERS[parameter.slot]]
            elif parameter.required:
                raise UnbindableError(f"needs `{parameter.name}`, which no probe can give")
        return self.spec(arguments, "scalar", gradient=leaf, seed=0)

    def _advantages(self) -> list[Any]:
        values: list[Any] = [1.0, -0.5]
        if self.convention.advantages != "row":
            repeat = 3 if self.convention.advantages == "token" else 1
            values = [[value] * repeat for value in values]
        return [self.convention.kind(), values]


_NUMBERS = {Slot.CLIP: 0.2, Slot.CLIP_LOW: 0.2, Slot.CLIP_HIGH: 0.2, Slot.BETA: 0.0,
            Slot.TEMPERATURE: 1.0, Slot.CAP: 3.0}  # fmt: skip


def _moved(nested: Any, shift: float) -> Any:
    """The same with its first entry moved."""
    if not isinstance(nested, list):
        return nested + shift
    return [_moved(nested[0], shift), *nested[1:]]


def _is_number(answer: Spec) -> bool:
    value = answer["value"]
    return isinstance(value, int | float) and value == value and "gradient" in answer
