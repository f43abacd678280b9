"""Every claim with its numbers, computed in this run; two processes where it pays."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rlproof.defence.worker import numbers_of, share
from rlproof.errors import ConfigError
from rlproof.lab.claims.model import Claim, Number
from rlproof.lab.claims.registry import SECTIONS, find, modules

_WORTH_IT = 8
"""Claims from which on a second process is started: it takes half a second to start."""
_MOST = 2


@dataclass(frozen=True, slots=True)
class Computed:
    """One claim, and what its numbers came to just now."""

    claim: Claim
    numbers: tuple[Number, ...] = ()
    error: str | None = None
    """What its computation raised, if it did."""

    @property
    def holds(self) -> bool:
        """Whether there are numbers and every one is as expected."""
        return self.error is None and bool(self.numbers) and not self.missed

    @property
    def missed(self) -> tuple[Number, ...]:
        """The numbers that are not as expected."""
        return tuple(n for n in self.numbers if not n.holds)


def chosen(names: Sequence[str] = ()) -> list[str]:
    """Ids of the claims that are meant, in the order of the registry, each once.

    Args:
        names: ids, names or letters of chapters, each maybe several with commas between;
            none means all.

    Raises:
        ConfigError: nothing is called so.
    """
    parts = [part.strip() for name in names for part in name.split(",") if part.strip()]
    if names and not parts:
        raise ConfigError("--only names no claim; try A9, or A for a whole chapter")
    wanted = {known for part in parts for known in _called(part)} if parts else set(modules())
    return [known for known in modules() if known in wanted]


def _called(part: str) -> list[str]:
    if part.upper() in SECTIONS:
        return [known for known in modules() if known[0] == part.upper()]
    try:
        return [find(part).id]
    except KeyError as error:
        raise ConfigError(str(error.args[0])) from None


def compute(ids: Sequence[str], processes: int | None = None) -> list[Computed]:
    """The numbers of these claims, in this order however they were computed.

    Args:
        ids: what `chosen` gave.
        processes: how many to use; None decides by the number of claims and of cores.
    """
    count = _processes(len(ids)) if processes is None else processes
    answers = share(ids) if count > 1 else [numbers_of(known) for known in ids]
    return [Computed(find(known), *answer) for known, answer in zip(ids, answers, strict=True)]


def _processes(claims: int) -> int:
    return min(_MOST, os.cpu_count() or 1) if claims >= _WORTH_IT else 1


def chapters(computed: Sequence[Computed]) -> Iterator[tuple[str, list[Computed]]]:
    """The claims by chapter; a chapter without one is left out."""
    for letter, title in SECTIONS.items():
        own = [one for one in computed if one.claim.id[0] == letter]
        if own:
            yield f"{letter}. {title}", own
