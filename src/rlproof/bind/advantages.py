"""An advantage function as rewards and a group size to advantages, all flat lists."""

from __future__ import annotations

import ast
from dataclasses import asdict
from itertools import product
from typing import Any

from rlproof.bind.implementation import Implementation, Spec, UnbindableError, raise_for
from rlproof.bind.sandbox import Sandbox
from rlproof.faults.seen import ScriptError
from rlproof.read.names import Slot, says_advantages
from rlproof.read.outline.layouts import is_crossed, tiles
from rlproof.read.records import records
from rlproof.read.targets import Parameter, Script, Target


class AdvantagesImplementation(Implementation):
    """Rewards and a group size to advantages, both as flat lists, groups consecutive."""

    def __init__(self, script: Script, target: Target, sandbox: Sandbox) -> None:
        super().__init__(script, target, sandbox)
        self.layout = "flat"
        self.tokens = False
        """Whether the groups' ids are rows of tokens, equal where the prompt is."""
        self.keyed = _are_keys(target)
        """Whether the groups' ids are keys of a dictionary, as no tensor can be."""
        self.crossed = is_crossed(target.node) and tiles(script.source.tree)
        """Whether the rows of a group are as far apart as there are groups."""
        self.records = {
            p.name: found
            for p in target.parameters
            if p.slot is Slot.RECORDS and (found := records(target.node, p.name))
        }
        reason = ""
        ids = (False, True) if target.has(Slot.GROUP_IDS) and not self.keyed else (False,)
        for tokens, layout in product(ids, self._layouts()):
            self.tokens, self.layout = tokens, layout
            try:
                self.settle(lambda: self._request([1.0, 0.0, 0.5, 0.0], 2), _is_flat_four)
            except UnbindableError as error:
                reason = reason or str(error)
            else:
                return
        raise UnbindableError(reason)

    def _layouts(self) -> tuple[str, ...]:
        """Shapes of the rewards to try; with a mask they may be those of single tokens."""
        if self.target.has(Slot.WEIGHTS):  # one for each reward function
            return ("column",)
        return ("column", "rows", "cube") if self.target.has(Slot.MASK) else ("flat", "grid")

    def run(self, rewards: list[float], group_size: int) -> list[float]:
        """The advantages of these rewards.

        Raises:
            ScriptError: the function raised.
        """
        answer = self.ask([self._request(rewards, group_size)])[0]
        return self._answer(answer, len(rewards), group_size)

    def many(self, batches: list[list[float]], group_size: int) -> list[list[float] | ScriptError]:
        """The advantages of each of several batches of rewards, or what it raised there."""
        answers = self.ask([self._request(rewards, group_size) for rewards in batches])
        found: list[list[float] | ScriptError] = []
        for rewards, answer in zip(batches, answers, strict=True):
            try:
                found.append(self._answer(answer, len(rewards), group_size))
            except ScriptError as error:
                found.append(error)
        return found

    def ask(self, specs: list[Spec]) -> list[Spec]:
        """As of any function; records are there to be written to."""
        answers = super().ask(specs)
        self.mutated -= {p.name for p in self.target.parameters if p.slot is Slot.RECORDS}
        keys = {found.reward for found in self.records.values()}
        for answer in answers:
            if "value" in answer:
                answer["value"] = _unpacked(answer["value"], keys)
        return answers

    def _answer(self, answer: Spec, count: int, group_size: int) -> list[float]:
        value = raise_for(answer)["value"]
        if value is None:
            raise ScriptError("None", "returned nothing", None, self.target.name)
        found = _advantages_in(value, count) or _flat(value)
        if not all(isinstance(x, int | float) for x in found):
            raise ScriptError("NotPlain", "returned what is no number", None, self.target.name)
        crossed = self.crossed and len(found) == count
        return _turned(found, count // group_size) if crossed else found

    def _request(self, rewards: list[float], group_size: int) -> Spec:
        arguments: dict[str, list[Any]] = {}
        for parameter in self.target.parameters:
            match parameter.slot:
                case Slot.REWARDS:
                    laid = self._lay(rewards, group_size)
                    arguments[parameter.name] = [self.convention.kind(), laid]
                case Slot.GROUP_SIZE:
                    arguments[parameter.name] = ["raw", group_size]
                case Slot.RECORDS:
                    arguments[parameter.name] = [
                        "records",
                        self._held(parameter, rewards, group_size),
                    ]
                case Slot.GROUPS:
                    arguments[parameter.name] = ["raw", len(rewards) // group_size]
                case Slot.GROUP_IDS:
                    ids: list[Any] = [i // group_size for i in range(len(rewards))]
                    if self.tokens:
                        ids = [[i] for i in ids]
                    kind = "numpy:int" if self.keyed else self.convention.kind("int")
                    arguments[parameter.name] = [kind, ids]
                case Slot.PROMPTS if parameter.required:
                    texts = [f"prompt {i // group_size}" for i in range(len(rewards))]
                    arguments[parameter.name] = ["raw", texts]
                case Slot.REWARD_FUNCTION:
                    arguments[parameter.name] = ["function", "reads its reward"]
                case Slot.RESPONSES | Slot.TRUTHS:
                    arguments[parameter.name] = ["raw", [repr(reward) for reward in rewards]]
                case Slot.EPS if parameter.required:
                    arguments[parameter.name] = ["raw", 1e-6]
                case Slot.WEIGHTS if parameter.required:
                    arguments[parameter.name] = [self.convention.kind(), [1.0]]
                case Slot.SWITCH if parameter.required:
                    arguments[parameter.name] = ["raw", True]
                case Slot.MASK if self.target.has(Slot.REWARDS):
                    ones: list[Any] = [[1]] * len(rewards)
                    if self.layout == "cube":
                        ones = [ones[i : i + group_size] for i in range(0, len(ones), group_size)]
                    arguments[parameter.name] = [self.convention.mask_kind(), ones]
                case None | Slot.WEIGHTS | Slot.EPS | Slot.SWITCH | Slot.PROMPTS:
                    continue
                case _ if parameter.required:
                    raise UnbindableError(f"needs `{parameter.name}` ({parameter.slot})")
        return self.spec(arguments, "plain")

    def _held(self, parameter: Parameter, rewards: list[float], group_size: int) -> Spec:
        """Records as the function reads them; their numbers are the script's own, or plain."""
        read = self.records.get(parameter.name)
        if read is None:
            raise UnbindableError(f"needs `{parameter.name}` ({parameter.slot})")
        groups = [rewards[i : i + group_size] for i in range(0, len(rewards), group_size)]
        kind = self.convention.kind() if self.layout == "grid" else "raw"
        return {**asdict(read), "groups": groups, "kind": "raw" if kind == "list" else kind}

    def _lay(self, rewards: list[float], group_size: int) -> list[Any]:
        if self.layout in ("flat", "rows"):
            return _turned(rewards, group_size) if self.crossed else list(rewards)
        column = [[reward] for reward in rewards]
        if self.layout == "column":
            return column
        rows: list[Any] = column if self.layout == "cube" else list(rewards)
        return [rows[i : i + group_size] for i in range(0, len(rows), group_size)]


def _are_keys(target: Target) -> bool:
    """Whether an entry of the groups' ids is an index, or the ids are said to be numpy's."""
    ids = target.parameter(Slot.GROUP_IDS)
    if ids is None:
        return False
    args = target.node.args
    for arg in [*args.posonlyargs, *args.args, *args.kwonlyargs]:
        if arg.arg == ids.name and arg.annotation and "ndarray" in ast.unparse(arg.annotation):
            return True
    walked = _walked(target.node, ids.name)
    for node in ast.walk(target.node):
        match node:
            case ast.Subscript(slice=ast.Subscript(value=ast.Name(id=name))) if name == ids.name:
                return True
            case ast.Subscript(slice=ast.Name(id=name)) if name in walked:
                return True
    return False


def _walked(function: ast.AST, name: str) -> set[str]:
    """Variables of the loops over something: `for row, uid in enumerate(index)` has two."""
    return {
        inner.id
        for node in ast.walk(function)
        if isinstance(node, ast.For | ast.comprehension)
        and any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node.iter))
        for inner in ast.walk(node.target)
        if isinstance(inner, ast.Name)
    }


def _turned(values: list[float], size: int) -> list[float]:
    """Runs of this size laid out across: first what is first in its run, then the second."""
    return [value for first in range(size) for value in values[first::size]]


def _unpacked(value: Any, rewards: set[str]) -> Any:
    """Advantages by their key or attribute; those of records may be under that of the reward."""
    if isinstance(value, list):
        return [_unpacked(item, rewards) for item in value]
    if not isinstance(value, dict):
        return value
    named = [key for key in value if says_advantages(key)] or [k for k in value if k in rewards]
    if named:
        return value[named[0]]
    held = [item for item in value.values() if isinstance(item, list)]
    return _unpacked(held[0], rewards) if rewards and len(held) == 1 else value


def _flat(value: Any) -> list[float]:
    if isinstance(value, list):
        return [x for item in value for x in _flat(item)]
    return [value]


def _advantages_in(value: Any, count: int) -> list[float] | None:
    """The advantages inside what was returned: all of it, or the first item of a tuple."""
    for candidate in [value, *(value[:1] if isinstance(value, list) else [])]:
        flat = _flat(candidate)
        if len(flat) == count and all(isinstance(x, int | float) for x in flat):
            return flat
    return None


def _is_flat_four(answer: Spec) -> bool:
    """Whether there is an advantage for each of four rewards, and any is not 0."""
    found = _advantages_in(answer["value"], 4)
    return found is not None and any(found)
