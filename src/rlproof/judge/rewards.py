"""What a reward function gives right, wrong and empty answers, in all the ways of writing them.

Nothing is expected of a function but what it shows itself: only where it tells a right answer from
a wrong one in some way of writing is it held to that elsewhere.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from math import isfinite
from typing import Any

from rlproof.bind.reward import GOLDS, RewardImplementation
from rlproof.faults.seen import RewardSeen, ScriptError
from rlproof.read.rewards import constant_spot, row_spot, search_spot, takes_one_truth
from rlproof.read.targets import Script, Target

ANSWERS = (
    "{}", "${}$", "The answer is {}.", "#### {}", "Answer: {}", "Final answer: {}", r"\boxed{{{}}}",
    r"$\boxed{{{}}}$", "<answer>{}</answer>", "<think>I add.</think><answer>{}</answer>",
    "<think>I add.</think>\n<answer>{}</answer>",
    "<think>\nI add.\n</think>\n<answer>\n{}\n</answer>",
    "<reasoning>\nI add.\n</reasoning>\n<answer>\n{}\n</answer>\n",
    r"<think>I add.</think> \boxed{{{}}}",
)  # fmt: skip
JUNK = ("", "qwertz uiop")
BROKEN = (*JUNK, "<answer>", "</answer>", r"\boxed{", "#### ", "<think>", "$", "The answer is")
LAYOUTS = (
    ("<think>I add.</think><answer>7</answer>", "<think></think><answer></answer>"),
    ("<think>I add.</think>\n<answer>7</answer>", "<think></think>\n<answer></answer>"),
    (
        "<think>\nI add.\n</think>\n<answer>\n7\n</answer>",
        "<think>\n\n</think>\n<answer>\n\n</answer>",
    ),
    (
        "<reasoning>\nI add.\n</reasoning>\n<answer>\n7\n</answer>\n",
        "<reasoning>\n\n</reasoning>\n<answer>\n\n</answer>\n",
    ),
)
_LAST = re.compile(
    r"(last|final) line|at the (very )?end|(end|finish|conclude)\w*\s+(your\s+\w+\s+)?with|"
    r"(answer|it)\s+last\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Told:
    """A way of writing in which right and wrong are told apart."""

    gold: str
    written: str
    right: float
    wrong: float


def judge(function: RewardImplementation) -> RewardSeen | None:
    """The facts of one reward function; None where its answers differ from call to call."""
    texts = [form.format(7) for form in ANSWERS]
    first, again = (_numbers(function, texts, "7") for _ in range(2))
    if first != again:
        return None
    told = _told(function) if function.needs_truth else None
    facts: dict[str, Any] = {
        "broken": _broken(function, told, first),
        "rows": _rows(function, told, first),
    }
    if told is not None:
        facts |= _of_answers(function, told)
    elif not function.needs_truth and "format" in function.target.name:
        facts["hollow"] = _hollow(function)
    return RewardSeen(function.target.name, _where(function.target, facts), facts)


def _told(function: RewardImplementation) -> _Told | None:
    """The way of writing with the largest distance between right and wrong."""
    best: _Told | None = None
    for gold in GOLDS:
        right, wrong = (
            _numbers(function, [form.format(n) for form in ANSWERS], gold.format(7)) for n in (7, 8)
        )
        for form, good, bad in zip(ANSWERS, right, wrong, strict=True):
            if good is None or bad is None:
                continue
            if good > bad and (best is None or good - bad > best.right - best.wrong):
                best = _Told(gold, form, good, bad)
    return best


def _of_answers(function: RewardImplementation, told: _Told) -> dict[str, Any]:
    """What nothing is worth, what a gold answer in another writing is, which of two answers."""
    gold = told.gold.format(7)
    facts: dict[str, Any] = {}
    nothing = _numbers(function, list(JUNK), gold)
    for text, got in zip(JUNK, nothing, strict=True):
        if got is not None and got >= told.right:
            facts.setdefault("junk", (text, got, told.wrong))
    empty = nothing[0]
    if empty is not None and told.wrong < empty < told.right:
        facts["silence"] = (empty, told.written.format(8), told.wrong)
    facts["unread"] = _unread(function, told)
    two = [
        f"{told.written.format(a)}\n\nNow I check it.\n\n{told.written.format(b)}"
        for a, b in ((8, 7), (7, 8))
    ]
    if _numbers(function, two, gold) == [told.wrong, told.right]:
        asked = _asks_for_the_last(function.script)
        if asked:
            facts["first"] = (two[0], told.wrong, told.right, asked)
    return facts


def _unread(function: RewardImplementation, told: _Told) -> tuple[str, float] | None:
    """A usual way of writing the gold answer for which every completion gets full marks."""
    texts = [
        told.written.format(7),
        told.written.format(8),
        *JUNK,
        *(f.format(n) for f in ANSWERS for n in (7, 8)),
    ]
    for form in GOLDS:
        if form == told.gold:
            continue
        got = _numbers(function, texts, form.format(7))
        if got[0] is not None and set(got) == {got[0]} and got[0] >= told.right:
            return form.format(7), got[0]
    return None


def _numbers(function: RewardImplementation, texts: list[str], gold: str) -> list[float | None]:
    """The finite rewards of texts, each by itself; None where there is none."""
    found = function.each(texts, [gold] * len(texts))
    return [x if isinstance(x, float) and isfinite(x) else None for x in found]


def _broken(
    function: RewardImplementation, told: _Told | None, plain: list[float | None]
) -> tuple[str, str, int | None] | None:
    """An unfinished text on which a function raises, or gives no finite number."""
    works = told is not None or len(set(plain)) > 1
    says = re.search(r"\brais", function.target.doc, re.IGNORECASE)
    if not works or says or _is_caught(function.script, function.target):
        return None
    gold = told.gold.format(7) if told else "7"
    for text, got in zip(BROKEN, function.each(BROKEN, [gold] * len(BROKEN)), strict=True):
        if isinstance(got, ScriptError):
            if got.own and got.line and got.kind not in ("Missing", "ImportError", "NotPlain"):
                return text, got.kind, got.line
        elif got is not None and not isfinite(got):
            return text, str(got), None
    return None


def _is_caught(script: Script, target: Target) -> bool:
    """Whether a call of it stands inside a `try`."""
    return any(
        isinstance(call, ast.Call) and getattr(call.func, "id", "") == target.name
        for node in ast.walk(script.source.tree)
        if isinstance(node, ast.Try)
        for part in node.body
        for call in ast.walk(part)
    )


def _rows(
    function: RewardImplementation, told: _Told | None, plain: list[float | None]
) -> tuple[str, str, str] | None:
    """(what was asked, what came, what should have) where rows are not rewarded on their own."""
    if not function.together or (told is None and len(set(plain)) < 2):
        return None
    form, gold = (told.written, told.gold) if told else (ANSWERS[-3], "{}")
    texts = [form.format(7), "qwertz uiop", form.format(8), form.format(9)]
    golds = [gold.format(n) for n in (7, 7, 7, 9)]
    try:
        there = function.run(texts, golds)
        back = function.run(texts[::-1], golds[::-1])
    except ScriptError:
        return None
    if there is None or back is None:
        return "4 completions, of which the second has no answer", "fewer rewards", "4 rewards"
    if there != back[::-1] and not (
        takes_one_truth(function.target) and "reward_funcs" not in function.script.source.text
    ):
        return (
            "rewards of 4 completions, given in the order 4, 3, 2, 1",
            str(back),
            str(there[::-1]),
        )
    return None


def _hollow(function: RewardImplementation) -> tuple[str, float, float] | None:
    """Tags with nothing between them, that get what a whole answer does and plain text does not."""
    for whole, tags in LAYOUTS:
        got = _numbers(function, [whole, tags, "I add. 7"], "7")
        if None in got:
            continue
        full, hollow, plain = (float(x or 0.0) for x in got)
        if full == hollow > plain:
            return tags, hollow, plain
    return None


def _asks_for_the_last(script: Script) -> str:
    """What a prompt of this file says about where the answer belongs; empty if nothing does."""
    for node in ast.walk(script.source.tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.JoinedStr):
            parts = (n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant))
            text = " ".join(part for part in parts if isinstance(part, str))
            if "answer" in text.lower() and (found := _LAST.search(text)):
                return found[0]
    return ""


def _where(target: Target, facts: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"rows": row_spot(target), "search": search_spot(target)}
    for name, index in (("junk", 1), ("silence", 0), ("unread", 1)):
        if facts.get(name):
            found[name] = constant_spot(target, float(facts[name][index]))
    return found
