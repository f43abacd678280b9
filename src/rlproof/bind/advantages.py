"""An advantage function as rewards and a group size to advantages, all flat lists."""

from __future__ import annotations

import ast
from typing import Any

from rlproof.bind.implementation import Implementation, Spec, UnbindableError, raise_for
from rlproof.bind.sandbox import Sandbox
from rlproof.faults.seen import ScriptError
from rlproof.read.names import Slot
from rlproof.read.targets import Script, Target


class AdvantagesImplementation(Implementation):
    """Rewards and a group size to advantages, both as flat lists, groups consecutive."""

    def __init__(self, script: Script, target: Target, sandbox: Sandbox) -> None:
        super().__init__(script, target, sandbox)
        self.layout = "flat"
        self.keyed = _are_keys(target)
        """Whether the groups' ids are keys of a dictionary, as no tensor can be."""
        reason = ""
        for layout in self._layouts():
            self.layout = layout
            try:
                self.settle(lambda: self._request([1.0, 0.0, 0.5, 0.0], 2), _is_flat_four)
            except UnbindableError as error:
                reason = reason or str(error)
            else:
                return
        raise UnbindableError(reason)

    def _layouts(self) -> tuple[str, ...]:
        """Shapes of the rewards to try; with a mask they are those of single tokens."""
        return ("column",) if self.target.has(Slot.MASK) else ("flat", "grid")

    def run(self, rewards: list[float], group_size: int) -> list[float]:
        """The advantages of these rewards.

        Raises:
            ScriptError: the function raised.
        """
        return self._answer(self.ask([self._request(rewards, group_size)])[0], len(rewards))

    def many(self, batches: list[list[float]], group_size: int) -> list[list[float] | ScriptError]:
        """The advantages of each of several batches of rewards, or what it raised there."""
        answers = self.ask([self._request(rewards, group_size) for rewards in batches])
        found: list[list[float] | ScriptError] = []
        for rewards, answer in zip(batches, answers, strict=True):
            try:
                found.append(self._answer(answer, len(rewards)))
            except ScriptError as error:
                found.append(error)
        return found

    def _answer(self, answer: Spec, count: int) -> list[float]:
        value = raise_for(answer)["value"]
        if value is None:
            raise ScriptError("None", "returned nothing", None, self.target.name)
        found = _advantages_in(value, count) or _flat(value)
        if not all(isinstance(x, int | float) for x in found):
            raise ScriptError("NotPlain", "returned what is no number", None, self.target.name)
        return found

    def _request(self, rewards: list[float], group_size: int) -> Spec:
        arguments: dict[str, list[Any]] = {}
        for parameter in self.target.parameters:
            match parameter.slot:
                case Slot.REWARDS:
                    laid = self._lay(rewards, group_size)
                    arguments[parameter.name] = [self.convention.kind(), laid]
                case Slot.GROUP_SIZE:
                    arguments[parameter.name] = ["raw", group_size]
                case Slot.GROUP_IDS:
                    ids = [i // group_size for i in range(len(rewards))]
                    kind = "numpy:int" if self.keyed else self.convention.kind("int")
                    arguments[parameter.name] = [kind, ids]
                case Slot.REWARD_FUNCTION:
                    arguments[parameter.name] = ["function", "reads its reward"]
                case Slot.RESPONSES | Slot.TRUTHS:
                    arguments[parameter.name] = ["raw", [repr(reward) for reward in rewards]]
                case Slot.EPS if parameter.required:
                    arguments[parameter.name] = ["raw", 1e-6]
                case Slot.SWITCH if parameter.required:
                    arguments[parameter.name] = ["raw", True]
                case Slot.MASK if self.layout == "column":
                    arguments[parameter.name] = [self.convention.mask_kind(), [[1]] * len(rewards)]
                case None | Slot.EPS | Slot.SWITCH:
                    continue
                case _ if parameter.required:
                    raise UnbindableError(f"needs `{parameter.name}` ({parameter.slot})")
        return self.spec(arguments, "plain")

    def _lay(self, rewards: list[float], group_size: int) -> list[Any]:
        if self.layout == "flat":
            return list(rewards)
        if self.layout == "column":
            return [[reward] for reward in rewards]
        return [rewards[i : i + group_size] for i in range(0, len(rewards), group_size)]


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
    return _advantages_in(answer["value"], 4) is not None
