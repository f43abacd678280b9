"""The defence of the tiny trainer for the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby

import click

from rlproof.defence.claims import Computed, chapters
from rlproof.defence.grounds import GroundedLine
from rlproof.defence.trainer import TrainerDefence
from rlproof.lab.claims.model import Number
from rlproof.report.defence.words import many, mark, told_number

_FEW = 2
"""Numbers of a claim that the short form prints; those that miss are printed always."""
_PAD = " " * 6
_HINT = (
    "`--full` adds statements, proofs, refuted versions and sources; `--only A9` shows one claim."
)
_SECTIONS = ("Statement", "Conditions", "Proof", "Refutes")


def render(defence: TrainerDefence, full: bool, width: int) -> str:
    """The lines of the tiny trainer, then the claims with their numbers, then the count."""
    parts = [
        *_lines(defence.lines, width),
        *_claims(defence.computed, full, width),
        "",
        *filled(verdict(defence), width, ""),
        *([] if full else filled(_HINT, width, "")),
    ]
    return "\n".join(parts) + "\n"


def _lines(lines: Sequence[GroundedLine], width: int) -> Iterator[str]:
    if lines:
        yield heading("The tiny trainer (rlproof.tiny), line by line")
    for name, own in groupby(lines, key=lambda one: one.ground.function):
        yield ""
        yield click.style(name, bold=True)
        for one in own:
            yield from _line(one, width)


def _line(one: GroundedLine, width: int) -> Iterator[str]:
    ids = " ".join(one.ground.claims)
    yield f"{one.line:>4}  {one.ground.code}"
    yield from filled(f"[{ids}] {one.ground.why}", width, _PAD)


def _claims(computed: Sequence[Computed], full: bool, width: int) -> Iterator[str]:
    for title, own in chapters(computed):
        yield ""
        yield heading(title)
        for one in own:
            yield ""
            yield from claim(one, full, width)


def claim(one: Computed, full: bool, width: int) -> Iterator[str]:
    """One claim: its sentence, its text if `full`, and its numbers."""
    state = "holds" if one.holds else "DOES NOT HOLD"
    colour = "green" if one.holds else "red"
    told = f"{many(len(one.numbers), 'number')}: {click.style(state, fg=colour, bold=True)}"
    first, *rest = filled(one.claim.title, width - len(_PAD), "")
    yield f"{click.style(f'{one.claim.id:<4}', bold=True)}  {first}"
    yield from (_PAD + line for line in rest)
    if full:
        yield from _text(one)
    yield f"{_PAD}{told}"
    if one.error:
        yield from filled(f"its computation raised {one.error}", width, _PAD)
    shown = one.numbers if full else _short(one)
    for number in shown:
        yield from _number(number, full, width)
    if left := len(one.numbers) - len(shown):
        yield f"{_PAD}     and {left} more that hold"
    if full:
        yield ""
        yield f"{_PAD}Sources:"
        for source in one.claim.sources:
            yield from filled(f"* {source.text} ({source.verified})", width, _PAD + "  ")


def _short(one: Computed) -> tuple[Number, ...]:
    first = one.numbers[:_FEW]
    return (*first, *(n for n in one.missed if n not in first))


def _text(one: Computed) -> Iterator[str]:
    texts = (one.claim.statement, one.claim.conditions, one.claim.proof, one.claim.refutes)
    for name, text in zip(_SECTIONS, texts, strict=True):
        yield f"{_PAD}{name}:"
        yield textwrap.indent(text, _PAD + "  ")
        yield ""


def _number(number: Number, full: bool, width: int) -> Iterator[str]:
    state = mark(number)
    label = click.style(f"{state:<4}", fg="green" if number.holds else "red")
    text = told_number(number) + (f" — {number.origin}" if full else "")
    first, *rest = filled(text, width - len(_PAD) - 5, "")
    yield f"{_PAD}{label} {first}"
    yield from (f"{_PAD}     {line}" for line in rest)


def verdict(defence: TrainerDefence) -> str:
    """How many claims hold, in one sentence."""
    failed = [one.claim.id for one in defence.computed if not one.holds]
    count = many(len(defence.computed), "claim")
    numbers = many(defence.numbers, "number")
    if failed:
        which = ", ".join(failed)
        return f"{count}, {numbers} computed in this run: {which} DO NOT HOLD."
    return f"{count}, {numbers} computed in this run: all hold."


def heading(title: str) -> str:
    """A title with a line below it."""
    return click.style(title, bold=True) + "\n" + "─" * len(title)


def filled(text: str, width: int, indent: str) -> list[str]:
    """A paragraph, indented."""
    return textwrap.wrap(
        text, max(40, width), initial_indent=indent, subsequent_indent=indent,
        break_on_hyphens=False,
    )  # fmt: skip
