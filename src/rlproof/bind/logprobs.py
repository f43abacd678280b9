"""Token log-probabilities as a function of logits, whatever shape the script takes them in.

Shapes: B rows, T slots, V words.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from rlproof.bind.implementation import Implementation, Spec, UnbindableError, raise_for
from rlproof.bind.sandbox import Sandbox
from rlproof.faults.seen import Rows, Scoring, ScriptError
from rlproof.read.landmarks import called
from rlproof.read.names import Slot
from rlproof.read.targets import Parameter, Script, Target

_LINES = ([0.0, 1.0, -1.0, 0.5], [0.3, -0.2, 0.0, 0.1])
_WORDS = 4
_MOST_WORDS = 64


def plain(words: int) -> Scoring:
    """Two rows of three tokens, with no logit far from 0."""
    lines = [(line * words)[:words] for line in _LINES]
    return Scoring([[line] * 3 for line in lines], [[1, 0, 1], [0, 1, 1]])


class LogProbsImplementation(Implementation):
    """Log-probs of a `Scoring`, one list a row; a sum over a row is a list of one."""

    def __init__(self, script: Script, target: Target, sandbox: Sandbox) -> None:
        super().__init__(script, target, sandbox)
        if _calls_a_model(target):
            raise UnbindableError("needs a model, which no probe can give")
        self.table = not target.has(Slot.LOGITS)
        """Whether the logits are a table with one line a row, the same in every slot."""
        if self.table and not target.has(Slot.ROWS):
            raise UnbindableError("takes a table of logits, but not the line that each row reads")
        self.sizes = [_WORDS, *_constants(script)]
        """Sizes of the vocabulary to try; a script may have its own as a constant."""
        reason = ""
        for words in self.sizes:
            try:
                self._settle_for(words)
            except UnbindableError as error:
                reason = reason or str(error)
            else:
                return
        raise UnbindableError(reason)

    def _settle_for(self, words: int) -> None:
        self.words, trial = words, plain(words)
        self.settle(lambda: self._request(trial), lambda a: rows_of(a["value"], trial) is not None)

    def run(self, scoring: Scoring) -> Rows:
        """The log-probs that the function returns.

        Raises:
            ScriptError: the function raised.
        """
        answer = raise_for(self.ask([self._request(scoring)])[0])
        rows = rows_of(answer["value"], scoring)
        if rows is None:
            raise ScriptError("shape", "returned another shape", None, self.target.name)
        return rows

    def in_float32(self, scoring: Scoring) -> Rows:
        """The same with float32 arrays where the script works on tensors."""
        kept = self.convention
        if kept.array == "torch":
            self.convention = replace(kept, dtype="float32")
        try:
            return self.run(scoring)
        finally:
            self.convention = kept

    def _request(self, scoring: Scoring) -> Spec:
        arguments: dict[str, list[Any]] = {}
        for parameter in self.target.parameters:
            value = self._value(parameter, scoring)
            if value is not None:
                arguments[parameter.name] = value
            elif parameter.required:
                raise UnbindableError(f"needs `{parameter.name}`, which no probe can give")
        return self.spec(arguments, "plain")

    def _value(self, parameter: Parameter, scoring: Scoring) -> list[Any] | None:
        convention = self.convention
        match parameter.slot:
            case Slot.THETA if self.table:
                return [convention.kind(), [slots[0] for slots in scoring.logits]]
            case Slot.LOGITS:
                return [convention.kind(), scoring.logits]
            case Slot.ROWS:
                return [convention.kind("int"), list(range(len(scoring.tokens)))]
            case Slot.TOKENS:
                return [convention.kind("int"), scoring.tokens]
            case Slot.MASK:
                mask = scoring.mask or [[1] * len(line) for line in scoring.tokens]
                return [convention.mask_kind(), mask]
            case Slot.TEMPERATURE:
                return ["raw", scoring.temperature or 1.0]
        return None


def _constants(script: Script) -> list[int]:
    """Small whole numbers that the script gives names to, each once."""
    found = [
        node.value.value
        for node in script.source.tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and type(node.value.value) is int
    ]
    sizes = dict.fromkeys(n for n in found if 2 <= n <= _MOST_WORDS and n != _WORDS)
    return list(sizes)[:4]


def _calls_a_model(target: Target) -> bool:
    """Whether the policy is called, or asked for its parts, and not indexed."""
    theta = target.parameter(Slot.THETA)
    if theta is None or target.has(Slot.LOGITS):
        return False
    for node in ast.walk(target.node):
        if isinstance(node, ast.Call) and called(node) == theta.name:
            return True
    return False


def rows_of(value: Any, scoring: Scoring) -> Rows | None:
    """The log-probs in what was returned: all of it, or the first part of a tuple."""
    count, width = len(scoring.tokens), len(scoring.tokens[0])
    for candidate in [value, *(value[:1] if isinstance(value, list) else [])]:
        rows = [_line(item) for item in candidate] if isinstance(candidate, list) else []
        lengths = {len(row) for row in rows if row is not None}
        if len(rows) == count and None not in rows and lengths <= {1, width - 1, width}:
            if len(lengths) == 1:
                return [row for row in rows if row is not None]
    return None


def _line(item: Any) -> list[float] | None:
    """One row as numbers; entries of one number each are taken out of their lists."""
    if not isinstance(item, list):
        item = [item]
    numbers = [x[0] if isinstance(x, list) and len(x) == 1 else x for x in item]
    real = all(isinstance(x, int | float) and not isinstance(x, bool) for x in numbers)
    return [float(x) for x in numbers] if real and numbers else None
