"""The questions with their numbers, computed when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from rlproof.defence.questions import QUESTIONS, Question
from rlproof.errors import ConfigError
from rlproof.lab.claims.model import Number
from rlproof.lab.claims.registry import find


@dataclass(frozen=True, slots=True)
class Asked:
    """One question with its place in the list."""

    place: int
    question: Question

    def numbers(self) -> list[tuple[str, Number]]:
        """The numbers of the answer and their claims, computed now.

        Raises:
            LookupError: its claim has no number of that name.
        """
        return [(known, _number(known, name)) for known, name in self.question.numbers]


def questions(choice: str) -> Iterator[Asked]:
    """The question of this number, or all of them.

    Raises:
        ConfigError: there is no such question.
    """
    every = [Asked(place, question) for place, question in enumerate(QUESTIONS, 1)]
    if choice == "all":
        yield from every
        return
    if not choice.isdecimal() or not 1 <= int(choice) <= len(every):
        raise ConfigError(f"--quiz {choice}: expected a question from 1 to {len(every)}")
    yield every[int(choice) - 1]


def _number(known: str, name: str) -> Number:
    for number in _computed(known):
        if number.name == name:
            return number
    raise LookupError(f"claim {known} has no number called {name!r}")


@cache
def _computed(known: str) -> tuple[Number, ...]:
    return find(known).numbers()
