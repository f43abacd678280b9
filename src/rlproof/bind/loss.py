"""A loss as a function of a `Batch`, whatever arrays, shapes and signs it works on.

Shapes: B rows, T slots. All arrays are nested lists on this side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isfinite
from typing import Any

from rlproof.bind.byrow import ByRow, by_rows
from rlproof.bind.convention import Convention
from rlproof.bind.implementation import Implementation, Spec, UnbindableError, raise_for
from rlproof.bind.sandbox import Sandbox
from rlproof.faults.seen import Answer, Batch, Rows, ScriptError
from rlproof.read.names import Slot, words
from rlproof.read.parts import parts
from rlproof.read.targets import Parameter, Script, Target

_LARGER = {"full", "global", "total", "all", "whole", "batch"}
_DRIFT = 0.1
_WIDTH = 8  # a constant normaliser no probe batch is as wide as


class LossImplementation(Implementation):
    """A loss as a function of a `Batch`, with its gradient by the new log-probs."""

    def __init__(self, script: Script, target: Target, sandbox: Sandbox, negative: bool) -> None:
        super().__init__(script, target, sandbox)
        self.negative = negative
        self._parts = parts(script.source.tree)
        plain = Batch(
            new=[[-1.0, -0.7, -1.2], [-0.9, -1.4, -1.1]],
            old=[[-1.1, -0.8, -1.0], [-1.0, -1.2, -1.3]],
            ref=[[-1.2, -0.9, -1.1], [-1.1, -1.0, -1.2]],
            advantages=[1.0, -1.0],
            mask=[[1, 1, 1], [1, 1, 0]],
        )
        self.pick: str | None = None
        self.by_row = ByRow()
        first = self._settled(plain)
        if len(first["places"]) > 1:
            self.pick = self._likeliest(first["places"], plain)
        self.reduced = not first["where"].endswith(".sum()")
        """Whether the loss is one number; if not, its entries are summed."""

    def _settled(self, plain: Batch) -> Spec:
        """The first answer; where no shape fits, log-probs of a rollout as numbers of rows."""
        wrong: UnbindableError | None = None
        for way in (ByRow(), *by_rows(self.target)):
            self.by_row = way
            try:
                first = self.settle(lambda: self._request(plain), _is_number)
            except UnbindableError as error:
                wrong = wrong or error
                continue
            if not way.slots or self._is_relative(plain):
                return first
        assert wrong is not None
        raise wrong

    def _is_relative(self, plain: Batch) -> bool:
        """Whether all policies can be shifted together, as wherever only ratios count."""
        after = plain.but(
            new=[[x - 0.25 for x in row] for row in plain.new],
            old=[[x - 0.25 for x in row] for row in plain.old],
            ref=[[x - 0.25 for x in row] for row in plain.ref],
        )
        one, other = (self.raw(batch).get("value") for batch in (plain, after))
        return one is not None and other is not None and abs(one - other) < 1e-5

    def many(self, batches: list[Batch]) -> list[Answer]:
        """Value and gradient for each batch."""
        answers = self.ask([self._request(batch) for batch in batches])
        return [self._answer(raise_for(answer)) for answer in answers]

    def run(self, batch: Batch) -> Answer:
        """Value and gradient for one batch.

        Raises:
            ScriptError: the loss raised.
        """
        return self.many([batch])[0]

    @property
    def masked(self) -> bool:
        """Whether it is told which slots are real."""
        return self.target.has(Slot.MASK) or self.target.has(Slot.LENGTHS)

    def raw(self, batch: Batch) -> Spec:
        """The child's answer as it is, errors included."""
        return self.raws(batch, (0,))[0]

    def raws(self, batch: Batch, seeds: Iterable[int]) -> list[Spec]:
        """The child's answers to one batch under several seeds, errors included."""
        return self.ask([self._request(batch, seed) for seed in seeds])

    def _answer(self, answer: Spec) -> Answer:
        if not isfinite(answer["value"]):
            name = self.target.name
            raise ScriptError("not finite", f"returned {answer['value']} on a probe", None, name)
        sign = -1.0 if self._is_negative(Slot.NEW) else 1.0
        return Answer(answer["value"], [[sign * g for g in row] for row in answer["gradient"]])

    def _request(self, batch: Batch, seed: int = 0) -> Spec:
        new = self.target.parameter(Slot.NEW)
        assert new is not None
        arguments = dict(self._arguments(batch))
        return self.spec(arguments, "scalar", gradient=new.name, seed=seed, pick=self.pick)

    def _likeliest(self, places: list[str], plain: Batch) -> str:
        """Of several numbers returned, the loss: it has a gradient and follows most inputs.

        A total follows the advantages and the reference, its parts only one of them.
        """
        scores: list[tuple[int, int, str]] = []
        for order, place in enumerate(places):
            self.pick = place
            first, flipped, away = (
                self.raw(batch)
                for batch in (
                    plain,
                    plain.but(advantages=[-a for a in plain.advantages]),
                    plain.but(ref=[[x - 0.5 for x in row] for row in plain.ref], beta=1.0),
                )
            )
            if "gradient" in first and any(map(any, first["gradient"])):
                follows = (first.get("value") != answer.get("value") for answer in (flipped, away))
                scores.append((-sum(follows), order, place))
        return min(scores)[2] if scores else places[0]

    def _arguments(self, batch: Batch) -> Iterator[tuple[str, list[Any]]]:
        for parameter in self.target.parameters:
            value = self._value(parameter, batch)
            if value is not None:
                yield parameter.name, value
            elif parameter.required:
                raise UnbindableError(
                    f"needs `{parameter.name}` ({parameter.slot}), which no probe can give a loss"
                )

    def _value(self, parameter: Parameter, batch: Batch) -> list[Any] | None:
        convention, width = self.convention, len(batch.mask[0])
        match parameter.slot:
            case Slot.NEW | Slot.OLD | Slot.REF:
                rows = {Slot.NEW: batch.new, Slot.OLD: batch.old, Slot.REF: batch.ref}
                values = self._signed(parameter.slot, rows[parameter.slot])
                return [convention.kind(), self.by_row.of(parameter.slot, values, batch.mask)]
            case Slot.ADVANTAGES:
                return [convention.kind(), _shaped(batch.advantages, convention, width)]
            case Slot.REWARDS if self.target.origin and parameter.required:
                return [convention.kind(), _shaped(batch.advantages, convention, width)]
            case Slot.MASK:
                return [convention.mask_kind(), self._mask(parameter, batch)]
            case Slot.LENGTHS:
                return [convention.kind("int"), [sum(row) for row in batch.mask]]
            case Slot.DIVERGENCES:
                return [convention.kind(), [[0.0] * width for _ in batch.mask]]
            case Slot.WEIGHTS if parameter.required:
                return [convention.kind(), [1.0]]
            case Slot.SWITCH | Slot.ONE if parameter.required:
                return ["raw", 1]
            case Slot.WIDTH if parameter.required:
                return ["raw", _WIDTH]
            case Slot.TEMPERATURE if parameter.required:
                return ["raw", 1.0]
            case Slot.BETA if not self.target.has(Slot.REF):  # of a penalty on the last update
                return ["raw", _DRIFT] if parameter.required else None
            case Slot.GROUP_SIZE if parameter.required:
                return ["raw", len(batch.mask)]
            case _:
                return _coefficient(parameter, batch)

    def _mask(self, parameter: Parameter, batch: Batch) -> list[Any]:
        """A second mask may differ, unless it is that of a larger batch, there to be counted.

        It is so by its name, or because another mask is rows of it.
        """
        if parameter.name == self.by_row.mask:
            return [int(any(row)) for row in batch.mask]
        masks = [
            p for p in self.target.parameters if p.slot is Slot.MASK and p.name != self.by_row.mask
        ]
        wholes = {w for part, w in self._parts if part != w and any(p.name == part for p in masks)}
        own = [p for p in masks if not set(words(p.name)) & _LARGER and p.name not in wholes]
        own = own or masks
        return batch.second or batch.mask if parameter in own[1:] else batch.mask

    def _is_negative(self, slot: Slot) -> bool:
        parameter = self.target.parameter(slot)
        return self.negative or bool(parameter and parameter.negative)

    def _signed(self, slot: Slot, rows: Rows) -> Rows:
        return [[-x for x in row] for row in rows] if self._is_negative(slot) else rows


def _is_number(answer: Spec) -> bool:
    return bool(answer["value"] == answer["value"])


def _coefficient(parameter: Parameter, batch: Batch) -> list[Any] | None:
    values = {
        Slot.CLIP: batch.low,
        Slot.CLIP_LOW: batch.low,
        Slot.CLIP_HIGH: batch.high,
        Slot.CAP: batch.cap,
        Slot.BETA: batch.beta,
    }
    value = values.get(parameter.slot) if parameter.slot else None
    if value is None and parameter.required and parameter.slot is Slot.CAP:
        value = 3.0
    return None if value is None else ["raw", value]


def _shaped(values: list[Any], convention: Convention, width: int) -> list[Any]:
    if any(isinstance(value, list) for value in values):  # one for each slot
        return [list(row) for row in values]
    if convention.advantages == "row":
        return list(values)
    repeat = width if convention.advantages == "token" else 1
    return [[value] * repeat for value in values]
