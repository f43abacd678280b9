"""Reward functions with TRL's signature, called so that nothing they do goes unnoticed.

    def reward(prompts, completions, completion_ids, **columns) -> list[float | None]

`columns` are the other columns of the prompts, one entry a completion. For prompts of messages, a
completion is `[{"role": "assistant", "content": text}]`. None says that the function has nothing
to say about that row. A function may be `async def`; those of one batch then run together.
Shapes: N completions, K functions.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import math
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from rlproof.errors import ConfigError, RewardError

RewardFunction = Callable[..., Any]


def named_function(text: str, folder: Path | None = None) -> RewardFunction:
    """The function that `module:function` names; modules beside the file are found too.

    Raises:
        ConfigError: there is no such module or function, or importing it fails.
    """
    module_name, colon, name = text.partition(":")
    if not colon or not name or not module_name:
        raise ConfigError(f"[rewards] function {text!r}, expected module:function")
    if folder is not None and str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise ConfigError(
            f"[rewards] function {text!r}: importing {module_name} failed "
            f"({type(error).__name__}: {error})"
        ) from error
    function = getattr(module, name, None)
    if not callable(function):
        near = get_close_matches(name, [n for n in vars(module) if callable(getattr(module, n))], 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ConfigError(f"[rewards] {module_name} has no function {name!r}{hint}")
    return function  # type: ignore[no-any-return]


@dataclass(frozen=True)
class RewardFunctions:
    """All reward functions of a run.

    Raises:
        ConfigError: there is none.
    """

    functions: Sequence[RewardFunction]
    timeout: float = 60.0
    """Seconds for one function and one batch."""
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        if not self.functions:
            raise ConfigError(
                "[rewards] functions is empty, expected module:function at least once"
            )
        object.__setattr__(self, "names", _names(self.functions))

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[list[int]],
        columns: Mapping[str, Sequence[Any]],
    ) -> list[list[float]]:
        """The rewards (N, K), NaN for None.

        Raises:
            RewardError: a function raised, ran into the timeout, or returned another number of
                rewards, something that is no finite number, or None for a row of which no other
                function said anything.
        """
        given = {"prompts": list(prompts), "completions": list(completions),
                 "completion_ids": list(completion_ids), **columns}  # fmt: skip
        answers = self._answers(given)
        by_function = [
            _checked(name, answer, len(prompts))
            for name, answer in zip(self.names, answers, strict=True)
        ]
        rows = [list(row) for row in zip(*by_function, strict=True)]
        for n, row in enumerate(rows):
            if all(map(math.isnan, row)):
                raise RewardError(
                    f"row {n}: {_several('reward function', self.names)} returned None, so the "
                    "completion has no reward; expected a number from one of them"
                )
        return rows

    def _answers(self, given: dict[str, Any]) -> list[Any]:
        """What each function returns; asynchronous ones run together."""
        late = [n for n, f in enumerate(self.functions) if _is_async(f)]
        answers: dict[int, Any] = {}
        for n, function in enumerate(self.functions):
            if n not in late:
                answers[n] = _within(self.timeout, self.names[n], partial(function, **given))
        if late:
            names = ", ".join(self.names[n] for n in late)
            gathered = _within(self.timeout, names, lambda: self._gather(late, given), grace=1.0)
            answers |= dict(zip(late, gathered, strict=True))
        return [answers[n] for n in range(len(self.functions))]

    def _gather(self, which: list[int], given: dict[str, Any]) -> list[Any]:
        async def one(n: int) -> Any:
            try:
                return await asyncio.wait_for(self.functions[n](**given), self.timeout)
            except TimeoutError as error:
                raise _SlowError(self.names[n]) from error
            except Exception as error:
                raise _raised(self.names[n], error) from error

        async def all_of_them() -> list[Any]:
            return list(await asyncio.gather(*(one(n) for n in which)))

        return asyncio.run(all_of_them())


class _SlowError(Exception):
    """An asynchronous function took too long; its argument is the name."""


def _within(seconds: float, name: str, call: Callable[[], Any], grace: float = 0.0) -> Any:
    """The result of a call that may raise or hang, made in a thread of its own.

    `grace` lets a call that watches its own time say which function it was. A thread can't be
    killed: one that hangs is left behind, as a daemon, and the run ends.
    """
    box: dict[str, Any] = {}

    def run() -> None:
        try:
            box["result"] = call()
        except BaseException as error:
            box["error"] = error

    thread = threading.Thread(target=run, daemon=True, name=f"reward {name}")
    thread.start()
    thread.join(seconds + grace)
    error = box.get("error")
    if isinstance(error, _SlowError) or (thread.is_alive() and not box):
        slow = error.args[0] if isinstance(error, _SlowError) else name
        raise RewardError(
            f"reward function {slow} has not returned after {seconds:g} s; let it give up sooner, "
            "or raise [rewards] timeout"
        )
    if isinstance(error, RewardError):
        raise error
    if error is not None:
        raise _raised(name, error) from error
    return box["result"]


def _raised(name: str, error: BaseException) -> RewardError:
    place = ""
    frames = error.__traceback__
    while frames is not None and frames.tb_next is not None:
        frames = frames.tb_next
    if frames is not None:
        code = frames.tb_frame.f_code
        place = f" at {Path(code.co_filename).name}:{frames.tb_lineno}"
    text = f"{type(error).__name__}: {error}".split("\n")[0]
    return RewardError(f"reward function {name} raised {text}{place}; no update was made with it")


def _checked(name: str, answer: Any, rows: int) -> list[float]:
    """The rewards of one function, as floats."""
    if hasattr(answer, "tolist"):
        answer = answer.tolist()
    if not isinstance(answer, list | tuple):
        raise RewardError(
            f"reward function {name} returned {type(answer).__name__}, expected a list of "
            f"{rows} numbers or None"
        )
    if len(answer) != rows:
        raise RewardError(
            f"reward function {name} returned {len(answer)} rewards for {rows} completions; "
            "expected one for each"
        )
    return [_number(name, n, value) for n, value in enumerate(answer)]


def _number(name: str, row: int, value: Any) -> float:
    if value is None:
        return math.nan
    value = value.item() if hasattr(value, "item") else value
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise RewardError(
            f"reward function {name} returned {value!r} for row {row}; expected a finite number, "
            "or None where it has nothing to say"
        )
    return float(value)


def _is_async(function: RewardFunction) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object with an async __call__
    )


def _names(functions: Sequence[RewardFunction]) -> tuple[str, ...]:
    """A name for each, no two alike."""
    found: list[str] = []
    for function in functions:
        name = getattr(function, "__name__", type(function).__name__)
        same = sum(other == name or other.startswith(f"{name}-") for other in found)
        found.append(f"{name}-{same + 1}" if same else name)
    return tuple(found)


def _several(noun: str, names: tuple[str, ...]) -> str:
    return f"{noun} {names[0]}" if len(names) == 1 else f"every {noun} ({', '.join(names)})"
