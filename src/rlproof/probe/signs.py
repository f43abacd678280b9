"""Whether a script works on negative log-probabilities throughout."""

from __future__ import annotations

from typing import Any

from rlproof.bind.convention import Convention
from rlproof.bind.sandbox import ChildDiedError, Sandbox
from rlproof.read.names import Slot
from rlproof.read.targets import Role, Script, Target

_TABLE = [[0.0, 1.0, -1.0, 0.5], [0.3, -0.2, 0.0, 0.1]]
_TOKENS = [[1, 2, 3], [0, 3, 1]]


def has_negative_log_probs(script: Script, sandbox: Sandbox) -> bool:
    """Whether the script's own token log-prob function returns positive numbers only.

    Decided from values: a function that can't be called with a small table says nothing.
    """
    return any(_is_negative(target, sandbox) for target in script.of(Role.LOG_PROBS))


def _is_negative(target: Target, sandbox: Sandbox) -> bool:
    for array in ("list", "torch", "numpy"):
        arguments = _arguments(target, Convention(array))
        if arguments is None:
            return False
        request = {"function": target.name, "arguments": arguments, "want": "plain"}
        try:
            answer = sandbox.call([request])[0]
        except ChildDiedError:
            return False
        if "error" not in answer:
            numbers = list(_numbers(answer["value"]))
            return bool(numbers) and min(numbers) > 0
    return False


def _arguments(target: Target, convention: Convention) -> dict[str, list[Any]] | None:
    batch = [[_TABLE[row][:] for _ in tokens] for row, tokens in enumerate(_TOKENS)]
    values: dict[Slot, list[Any]] = {
        Slot.THETA: [convention.kind(), _TABLE],
        Slot.LOGITS: [convention.kind(), batch],
        Slot.ROWS: [convention.kind("int"), [0, 1]],
        Slot.TOKENS: [convention.kind("int"), _TOKENS],
        Slot.TEMPERATURE: ["raw", 1.0],
    }
    given = {p.name: values[p.slot] for p in target.parameters if p.slot in values}
    missing = [p for p in target.parameters if p.required and p.name not in given]
    return None if missing else given


def _numbers(value: Any) -> list[float]:
    if isinstance(value, list):
        return [x for item in value for x in _numbers(item)]
    return [value] if isinstance(value, float) else []
