"""A recognised function in its sandbox: which arguments it takes and how it is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rlproof.bind.convention import Convention, conventions
from rlproof.bind.sandbox import ChildDiedError, Sandbox
from rlproof.faults.seen import ScriptError
from rlproof.read.targets import Script, Target

Spec = dict[str, Any]
_SHOWN = 60


class UnbindableError(Exception):
    """The function can't be called; the message is the reason for the report."""


class Implementation:
    """One function of the script in its sandbox."""

    def __init__(self, script: Script, target: Target, sandbox: Sandbox) -> None:
        self.script = script
        self.target = target
        self.sandbox = sandbox
        self.convention = Convention("list")
        self.mutated: set[str] = set()
        unknown = [p.name for p in target.parameters if p.required and p.slot is None]
        if unknown:
            names = ", ".join(f"`{name}`" for name in unknown)
            hint = f"; `# rlproof: loss old={unknown[0]}` would say it" if target.origin else ""
            raise UnbindableError(f"needs {names}, whose meaning is not recognised{hint}")

    def settle(self, make: Callable[[], Spec], accept: Callable[[Spec], bool]) -> Spec:
        """Find the convention under which the plain call works. Returns its answer.

        Raises:
            UnbindableError: none does; the reason is that of the likeliest convention.
        """
        reason = ""
        for convention in conventions(self.script, self.target):
            self.convention = convention
            answer = self.ask([make()])[0]
            if "error" not in answer and accept(answer):
                return answer
            reason = self._better(reason, _reason(answer))
        raise UnbindableError(reason)

    def _better(self, reason: str, another: str) -> str:
        """The reason of the likeliest convention; a package that is missing explains more."""
        if self.target.origin and another.startswith("needs ") and not reason.startswith("needs "):
            return another
        return reason or another

    def ask(self, specs: list[Spec]) -> list[Spec]:
        """Perform several calls.

        Raises:
            UnbindableError: the function hung, crashed the interpreter or ended the process.
        """
        try:
            answers = self.sandbox.call(specs)
        except ChildDiedError as error:
            raise UnbindableError(str(error)) from None
        for answer in answers:
            self.mutated.update(answer.get("mutated", ()))
        return answers

    def spec(self, arguments: dict[str, list[Any]], want: str, **more: Any) -> Spec:
        """One request for the child."""
        by_position = len(self.target.node.args.posonlyargs)
        return {
            "function": self.target.entry,
            "arguments": arguments,
            "want": want,
            "by_position": by_position,
            **more,
        }


def _reason(answer: Spec) -> str:
    error = answer.get("error")
    if error is None:
        return f"returned {_short(answer.get('value'))}"
    if error["type"] == "NotPlain":
        return str(error["message"])
    if error["type"] in ("ImportError", "Missing"):
        return str(error["message"])
    where = f" at line {error['line']}" if "line" in error else ""
    return f"raised {error['type']}{where}: {error['message']}".rstrip(": ")


def _short(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def raise_for(answer: Spec) -> Spec:
    """The answer, unless it carries an error.

    Raises:
        ScriptError: the script's function raised.
    """
    if error := answer.get("error"):
        raise ScriptError(error["type"], error["message"], error.get("line"), error.get("function"))
    return answer
