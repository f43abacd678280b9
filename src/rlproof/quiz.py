"""`rlproof defend --quiz`: questions one by one, or all with their answers where nobody types."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

from rlproof.defence.quiz import Asked, questions
from rlproof.report.defence.quiz import answer, question

Echo = Callable[[str], None]
_RIGHT = ("y", "yes")
_STOP = ("q", "quit")


def run(choice: str, width: int, echo: Echo, interactive: bool | None = None) -> int:
    """Ask; 0 if every number that was shown is as expected, 1 if one is not.

    Args:
        choice: the number of one question, or `all`.
        width: columns of the terminal.
        echo: prints.
        interactive: None asks whether standard input is a terminal.

    Raises:
        ConfigError: there is no such question.
    """
    asked = [*questions(choice)]
    terminal = sys.stdin.isatty() if interactive is None else interactive
    return _ask(asked, width, echo) if terminal else _print(asked, width, echo)


def _print(asked: Iterable[Asked], width: int, echo: Echo) -> int:
    fine = True
    for one in asked:
        text, holds = answer(one, width)
        echo(f"{question(one, width)}\n\n{text}\n\n")
        fine = fine and holds
    return int(not fine)


def _ask(asked: list[Asked], width: int, echo: Echo) -> int:
    right, seen, fine = 0, 0, True
    for one in asked:
        echo(f"{question(one, width)}\n")
        if _typed("your answer (Enter shows ours, q stops): ", echo) in _STOP:
            break
        text, holds = answer(one, width)
        echo(f"\n{text}\n\n")
        fine, seen = fine and holds, seen + 1
        said = _typed("did yours say the same? (y/n, q stops): ", echo)
        right += said in _RIGHT
        echo("\n")
        if said in _STOP:
            break
    if seen:
        echo(f"{right} of {seen} as in the model answers.\n")
    return int(not fine)


def _typed(prompt: str, echo: Echo) -> str:
    echo(prompt)
    line = sys.stdin.readline()
    return line.strip().lower() if line else _STOP[0]
