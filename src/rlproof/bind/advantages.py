"""An advantage function as rewards and a group size to advantages, all flat lists."""

from __future__ import annotations

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
        reason = ""
        for layout in ("flat", "grid"):
            self.layout = layout
            try:
                self.settle(lambda: self._request([1.0, 0.0, 0.5, 0.0], 2), _is_flat_four)
            except UnbindableError as error:
                reason = reason or str(error)
            else:
                return
        raise UnbindableError(reason)

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
                    arguments[parameter.name] = [self.convention.kind("int"), ids]
                case Slot.REWARD_FUNCTION:
                    arguments[parameter.name] = ["function", "reads its reward"]
                case Slot.RESPONSES | Slot.TRUTHS:
                    arguments[parameter.name] = ["raw", [repr(reward) for reward in rewards]]
                case Slot.EPS if parameter.required:
                    arguments[parameter.name] = ["raw", 1e-6]
                case Slot.SWITCH if parameter.required:
                    arguments[parameter.name] = ["raw", True]
                case None | Slot.EPS | Slot.SWITCH:
                    continue
                case _ if parameter.required:
                    raise UnbindableError(f"needs `{parameter.name}` ({parameter.slot})")
        return self.spec(arguments, "plain")

    def _lay(self, rewards: list[float], group_size: int) -> list[Any]:
        if self.layout == "flat":
            return list(rewards)
        return [rewards[i : i + group_size] for i in range(0, len(rewards), group_size)]


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
