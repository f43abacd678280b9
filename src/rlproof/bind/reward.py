"""A reward function of texts: given completions and expected answers, asked for numbers.

Shapes: B rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlproof.bind.implementation import Implementation, Spec, UnbindableError, raise_for
from rlproof.bind.sandbox import Sandbox
from rlproof.faults.seen import ScriptError
from rlproof.read.names import Slot
from rlproof.read.rewards import keys_of_rest, takes_chats
from rlproof.read.targets import Script, Target

_PROMPT = "What is 3 + 4?"
FIRST = (
    "7", "$7$", "The answer is 7.", "#### 7", r"\boxed{7}",
    "<think>\nI add.\n</think>\n<answer>\n7\n</answer>",
    "<reasoning>\nI add.\n</reasoning>\n<answer>\n7\n</answer>\n",
)  # fmt: skip
"""Completions of which a reward function should know one."""
GOLDS = ("{}", "#### {}", r"\boxed{{{}}}", "${}$", "<answer>{}</answer>")
"""Usual ways of writing the expected answer."""
Reward = float | None


class RewardImplementation(Implementation):
    """Texts and expected answers to rewards: all rows in one call, or one row in each."""

    def __init__(self, script: Script, target: Target, sandbox: Sandbox) -> None:
        super().__init__(script, target, sandbox)
        self.rest = keys_of_rest(target.node)
        self.needs_truth = target.has(Slot.TRUTHS) or Slot.TRUTHS in self.rest.values()
        chats = ("chats", "texts") if takes_chats(target, script.source.tree) else ("texts",)
        single = not _is_plural(target)
        self.form = ""
        reason = ""
        for self.form in ("one", *chats) if single else (*chats, "one"):
            tries = [(text, gold.format(7)) for gold in GOLDS for text in FIRST]
            for one in self.each(*zip(*tries, strict=True)):
                if isinstance(one, float):
                    return
                reason = reason or (str(one) if one else "returned no number for a completion")
        raise UnbindableError(reason)

    @property
    def together(self) -> bool:
        """Whether several rows are given in one call."""
        return self.form != "one"

    def each(self, texts: Sequence[str], truths: Sequence[str]) -> list[Reward | ScriptError]:
        """The reward of every text by itself, in a call of its own; or what that raised."""
        specs = [self._specs([text], [truth])[0] for text, truth in zip(texts, truths, strict=True)]
        return [self._alone(answer) for answer in self.ask(specs)]

    def _alone(self, answer: Spec) -> Reward | ScriptError:
        try:
            found = self._read([raise_for(answer)["value"]], 1)
        except ScriptError as error:
            return error
        return found[0] if found else None

    def run(self, texts: Sequence[str], truths: Sequence[str]) -> list[Reward] | None:
        """One reward a row, or None where another number of them came back.

        Raises:
            ScriptError: the function raised.
        """
        answers = self.ask(self._specs(list(texts), list(truths)))
        return self._read([raise_for(answer)["value"] for answer in answers], len(texts))

    def _specs(self, texts: list[str], truths: list[str]) -> list[Spec]:
        if self.together:
            return [self._spec([self._said(t) for t in texts], truths, [_PROMPT] * len(texts))]
        return [self._spec(t, truth, _PROMPT) for t, truth in zip(texts, truths, strict=True)]

    def _said(self, text: str) -> Any:
        return [{"role": "assistant", "content": text}] if self.form == "chats" else text

    def _spec(self, responses: Any, truths: Any, prompts: Any) -> Spec:
        if self.form == "chats":
            prompts = [[{"role": "user", "content": p}] for p in prompts]
        given = {Slot.RESPONSES: responses, Slot.TRUTHS: truths, Slot.PROMPTS: prompts}
        arguments = {p.name: ["raw", given[p.slot]] for p in self.target.parameters
                     if p.slot in given}  # fmt: skip
        arguments |= {key: ["raw", given[slot]] for key, slot in self.rest.items()
                      if slot in given and key not in arguments}  # fmt: skip
        return self.spec(arguments, "plain")

    def _read(self, values: list[Any], rows: int) -> list[Reward] | None:
        """The rewards, one a row; a record of them by its `score` or `reward`."""
        rewards = values[0] if self.together else values
        if not isinstance(rewards, list) or len(rewards) != rows:
            return None
        found = [_number(one) for one in rewards]
        return None if any(one is ... for one in found) else found


def _number(value: Any) -> Any:
    """A number or None as it is; `...` for anything else."""
    if isinstance(value, dict):
        value = next((value[k] for k in ("score", "reward", "total") if k in value), ...)
    if isinstance(value, bool | int | float):
        return float(value)
    return None if value is None else ...


def _is_plural(target: Target) -> bool:
    name = next(p.name for p in target.parameters if p.slot is Slot.RESPONSES)
    return name.rstrip("_").endswith("s")
