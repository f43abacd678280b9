"""What a shell offers after Tab: codes and names of faults, rules and recipes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem


def faults(
    _context: click.Context, _option: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Codes, prefixes and names for --select and --ignore; the last one of a list."""
    from rlproof.faults.registry import catalogue

    done, comma, last = incomplete.rpartition(",")
    known = [(fault.code, fault.name, fault.summary) for fault in catalogue().values()]
    return _matching(known, last, done + comma)


def pages(
    _context: click.Context, _option: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Codes and names that `explain` has a page of."""
    from rlproof.watch.rules.registry import rules

    known = [(rule.code, rule.name, rule.summary) for rule in rules().values()]
    return [*faults(_context, _option, incomplete), *_matching(known, incomplete, "")]


def recipes(
    _context: click.Context, _option: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Names of published objectives."""
    from click.shell_completion import CompletionItem

    from rlproof.space.recipes import RECIPES

    return [CompletionItem(name) for name in RECIPES if name.startswith(incomplete.lower())]


def _matching(
    known: Iterable[tuple[str, str, str]], word: str, before: str
) -> list[CompletionItem]:
    """Codes for what starts in capitals or is empty, names for the rest."""
    from click.shell_completion import CompletionItem

    found = []
    for code, name, summary in known:
        if word and word == word.lower() and name.startswith(word):
            found.append(CompletionItem(before + name, help=f"{code}: {summary}"))
        elif code.startswith(word.upper()):
            found.append(CompletionItem(before + code, help=f"{name}: {summary}"))
    return found
