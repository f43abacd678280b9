"""A function that asks a model for log-probs, with the stand-in model as its policy.

Shapes: B rows, P prompt slots, C completion slots, T = P + C.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from rlproof.bind.convention import conventions
from rlproof.bind.implementation import Implementation, Spec, UnbindableError, raise_for
from rlproof.bind.model import EOS, PAD, Texts, ladder
from rlproof.bind.sandbox import Sandbox
from rlproof.faults.seen import Rows
from rlproof.read.extraction import keys_of, names_log_probs
from rlproof.read.names import Slot
from rlproof.read.targets import Parameter, Script, Target

_MOST_TRIALS = 60
_CARRIERS = (Slot.PROMPT_TOKENS, Slot.COMPLETION_TOKENS, Slot.TOKENS)


@dataclass(frozen=True, slots=True)
class Manner:
    """One way of giving the arguments."""

    one_row: bool = False
    """Whether a row is given alone, without an axis of rows."""
    kind: str = "torch"
    count: str = "number"
    """Lengths as a `number`, a `list` or a `tensor`; `starts`: those of prompts as a tensor, the
    number of tokens to keep as a number."""
    mask: str = "int"
    span: str = "completion"
    """What a mask of the completion spans: the `completion`, the `whole` row, its `targets`."""


class ExtractionImplementation(Implementation):
    """The log-probs that a function reads off a model, one list a row."""

    def __init__(self, script: Script, target: Target, sandbox: Sandbox) -> None:
        super().__init__(script, target, sandbox)
        if next(conventions(script, target)).array != "torch" and not _uses_torch(script):
            raise UnbindableError("needs a model, and the one that stands in for it needs torch")
        self.manner = Manner()
        self.slots = frozenset(self._slots())
        self.differentiable = False
        self._refuse_unknown_keys()
        reason = ""
        first = plain()
        for manner in self._manners():
            self.manner = manner
            answer = self.ask([self._request(first)])[0]
            if "error" not in answer and any(self.readings(answer["value"], first)):
                self.differentiable = bool(answer.get("differentiable"))
                return
            reason = reason or _reason(answer)
        raise UnbindableError(reason)

    def answers(self, texts: list[Texts]) -> list[list[Rows]]:
        """For every batch the readings of what the function returned.

        Raises:
            ScriptError: the function raised.
        """
        found = self.ask([self._request(one) for one in texts])
        return [
            list(self.readings(raise_for(answer)["value"], one))
            for answer, one in zip(found, texts, strict=True)
        ]

    def readings(self, value: Any, texts: Texts) -> Iterator[Rows]:
        """Everything in what was returned that has the shape of log-probs."""
        count = 1 if self.manner.one_row else len(texts.prompts)
        yield from _readings(value, count, len(texts.ids()[0]), self.manner.one_row)

    def _slots(self) -> Iterator[Slot]:
        for parameter in self.target.parameters:
            if parameter.slot is Slot.TENSORS:
                yield from keys_of(self.target.node, parameter.name).slots.values()
            elif parameter.slot is not None:
                yield parameter.slot

    def _refuse_unknown_keys(self) -> None:
        for parameter in self.target.parameters:
            if parameter.slot is Slot.TENSORS:
                if unknown := keys_of(self.target.node, parameter.name).unknown:
                    shown = ", ".join(f'{parameter.name}["{key}"]' for key in unknown)
                    raise UnbindableError(f"needs {shown}, whose meaning is not recognised")

    def _manners(self) -> Iterator[Manner]:
        """Ways to try, the usual ones first."""
        several = (Slot.KEEP, Slot.START, Slot.LENGTHS)
        counts = _options(self.slots, several, ("number", "list", "tensor"))
        counts += ("starts",) if {Slot.KEEP, Slot.START} <= self.slots else ()
        masks = (Slot.ATTENTION, Slot.COMPLETION_MASK, Slot.PROMPT_MASK)
        kinds = _options(self.slots, masks, ("int", "bool", "float"))
        spans = _options(self.slots, (Slot.COMPLETION_MASK,), ("completion", "whole", "targets"))
        found = 0
        for one_row, array in ((False, "torch"), (True, "torch"), (True, "list"), (False, "list")):
            for mask, count, span in product(kinds, counts, spans):
                found += 1
                if found <= _MOST_TRIALS:
                    yield Manner(one_row, array, count, mask, span)

    def _request(self, texts: Texts) -> Spec:
        arguments: dict[str, list[Any]] = {}
        for parameter in self.target.parameters:
            value = self._argument(parameter, texts)
            if value is not None:
                arguments[parameter.name] = value
            elif parameter.required:
                raise UnbindableError(f"needs `{parameter.name}` ({parameter.slot})")
        return self.spec(arguments, "plain", asks_gradient=True)

    def _argument(self, parameter: Parameter, texts: Texts) -> list[Any] | None:
        if parameter.slot is Slot.TENSORS:
            keys = keys_of(self.target.node, parameter.name).slots
            given = {key: self._value(slot, texts) for key, slot in keys.items()}
            return ["tensors", {key: value for key, value in given.items() if value}]
        if parameter.slot is Slot.UNSEEN:
            name = parameter.name.removeprefix("self_")
            return ["missing", f"needs `self.{name}`, whose value is not known"]
        if parameter.slot is None:
            return None
        if parameter.slot in (Slot.SWITCH, Slot.CHUNK, Slot.DEVICE) and not parameter.required:
            return None
        return self._value(parameter.slot, texts)

    def _value(self, slot: Slot, texts: Texts) -> list[Any] | None:
        if slot in _SINGLE:
            return _SINGLE[slot](texts)
        if slot in (Slot.KEEP, Slot.START, Slot.LENGTHS):
            return self._count(slot, texts)
        if slot in _TOKENS_OF:
            return self._array("int", _TOKENS_OF[slot](texts))
        if slot is Slot.LABELS:
            return self._array("int", texts.labels or texts.ids())
        if slot is Slot.COMPLETION_MASK:
            return self._array(self.manner.mask, self._span(texts))
        masks = {Slot.ATTENTION: Texts.attention, Slot.PROMPT_MASK: Texts.prompt_mask}
        return self._array(self.manner.mask, masks[slot](texts)) if slot in masks else None

    def _span(self, texts: Texts) -> list[list[int]]:
        match self.manner.span:
            case "completion":
                return texts.completion_mask()
            case "whole":
                return texts.real()
        return [row[1:] for row in texts.real()]

    def _count(self, slot: Slot, texts: Texts) -> list[Any]:
        counts = texts.starts()
        if slot is Slot.LENGTHS:
            counts = [sum(row) for row in texts.attention()]
        if slot is Slot.KEEP:
            counts = [texts.after] * len(texts.prompts)
        kept = slot is Slot.KEEP and self.manner.count == "starts"
        if self.manner.one_row or self.manner.count == "number" or kept:
            return ["raw", counts[0]]
        return ["raw", counts] if self.manner.count == "list" else ["torch:int", counts]

    def _array(self, what: str, rows: list[list[int]]) -> list[Any]:
        value: Any = rows[0] if self.manner.one_row else rows
        if self.manner.kind == "list":
            return ["list", value]
        return [f"torch:{'float32' if what == 'float' else what}", value]


_SINGLE: dict[Slot, Callable[[Texts], list[Any] | None]] = {
    Slot.MODEL: lambda texts: texts.table.wire(),
    Slot.TEMPERATURE: lambda texts: ["raw", texts.temperature or 1.0],
    Slot.CHUNK: lambda _: ["raw", 2],
    Slot.DEVICE: lambda _: ["raw", "cpu"],
    Slot.SWITCH: lambda _: ["raw", False],
    Slot.PAD: lambda _: ["raw", PAD],
    Slot.EOS: lambda _: ["raw", EOS],
    Slot.TOKENIZER: lambda _: ["tokenizer", {"pad": PAD, "eos": EOS}],
}
_TOKENS_OF: dict[Slot, Callable[[Texts], list[list[int]]]] = {
    Slot.TOKENS: Texts.ids,
    Slot.PROMPT_TOKENS: Texts.prompt_ids,
    Slot.COMPLETION_TOKENS: Texts.completion_ids,
    Slot.POSITIONS: lambda texts: _positions(texts.attention()),
}


def _positions(attention: list[list[int]]) -> list[list[int]]:
    return [[max(sum(row[: i + 1]) - 1, 0) for i in range(len(row))] for row in attention]


def plain() -> Texts:
    """Three rows without padding; widths, rows and words are all different numbers."""
    prompts = [[4, 7, 2, 9, 5], [8, 3, 6, 1, 4], [2, 5, 8, 3, 9]]
    completions = [[6, 1, 8, 3], [9, 2, 5, 7], [1, 7, 4, 6]]
    return Texts(prompts, completions, ladder())


def _options(slots: frozenset[Slot], wanted: tuple[Slot, ...], all_: tuple[str, ...]) -> Any:
    return all_ if slots & set(wanted) else all_[:1]


def _uses_torch(script: Script) -> bool:
    return "import torch" in script.source.text or "from torch" in script.source.text


def _readings(value: Any, count: int, width: int, one_row: bool) -> Iterator[Rows]:
    """Rows in a value: all of it, then its parts, those named like log-probs first."""
    if isinstance(value, dict):
        named = sorted(value, key=lambda key: not names_log_probs(str(key)))
        for key in named:
            yield from _readings(value[key], count, width, one_row)
        return
    if not isinstance(value, list):
        if one_row and _is_number(value):
            yield [[float(value)]]
        return
    if not value:
        return
    if rows := _rows(value, count, width, one_row):
        yield rows
    elif len(value) <= 6:
        for item in value:
            yield from _readings(item, count, width, one_row)


def _rows(value: list[Any], count: int, width: int, one_row: bool) -> Rows | None:
    outer: Any = _flat(value) if one_row else value
    entries: list[Any] = [_flat(item) for item in outer]
    if all(map(_is_number, entries)):
        numbers = list(map(float, entries))
        if one_row and len(numbers) <= width:
            return [numbers]
        if len(numbers) == count:
            return [[x] for x in numbers]
        return _packed(numbers, count, width)
    if len(entries) == count and all(isinstance(row, list) and row for row in entries):
        if all(_is_number(x) for row in entries for x in row) and max(map(len, entries)) <= width:
            return [[float(x) for x in row] for row in entries]
    return None


def _packed(numbers: list[float], count: int, width: int) -> Rows | None:
    """Rows one after the other, without an axis of rows."""
    each, rest = divmod(len(numbers), count)
    if rest or not 1 < each <= width:
        return None
    return [numbers[i : i + each] for i in range(0, len(numbers), each)]


def _flat(item: Any) -> Any:
    """Entries of one number each are taken out of their lists, of a row or of its slots."""
    if isinstance(item, list) and item and all(isinstance(x, list) and len(x) == 1 for x in item):
        return [x[0] for x in item]
    return item


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _reason(answer: Spec) -> str:
    error = answer.get("error")
    if error is None:
        return "returned nothing that has the shape of log-probs"
    if error["type"] in ("NotPlain", "ImportError", "Missing", "UnavailableError"):
        return str(error["message"])
    where = f" at line {error['line']}" if "line" in error else ""
    return f"raised {error['type']}{where}: {error['message']}".rstrip(": ")
