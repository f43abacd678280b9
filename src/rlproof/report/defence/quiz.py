"""A question and its answer as text."""

from __future__ import annotations

from collections.abc import Iterator

import click

from rlproof.defence.quiz import Asked
from rlproof.lab.claims.registry import find
from rlproof.report.defence.text import filled
from rlproof.report.defence.words import mark, told_number

_PAD = "    "


def question(asked: Asked, width: int) -> str:
    """The question alone."""
    head, *rest = filled(f"{asked.place}. {asked.question.text}", width, "")
    return "\n".join([click.style(head, bold=True), *(click.style(x, bold=True) for x in rest)])


def answer(asked: Asked, width: int) -> tuple[str, bool]:
    """The model answer with the numbers of now, and whether all of these are as expected."""
    numbers = asked.numbers()
    lines = [*filled(asked.question.answer, width, _PAD), ""]
    for known, number in numbers:
        colour = "green" if number.holds else "red"
        first, *rest = filled(f"{known}: {told_number(number)}", width - 10, "")
        lines.append(f"{_PAD}{click.style(f'{mark(number):<4}', fg=colour)} {first}")
        lines += [f"{_PAD}     {line}" for line in rest]
    lines += ["", *_claims(asked, width)]
    return "\n".join(lines), all(number.holds for _, number in numbers)


def _claims(asked: Asked, width: int) -> Iterator[str]:
    for known in asked.question.claims:
        yield from filled(f"{known}: {find(known).title}", width, _PAD)
