"""Sets of edits that cover every finding of one function, the least change first.

A finding is covered by an edit of its own, or by one of another finding that removes both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlproof.judge.findings import Finding
from rlproof.repair.edits.model import ConflictError, Edit, compose

_MOST = 400


@dataclass(frozen=True, slots=True)
class Cover:
    """One set of edits for one function, and the tokens that it changes."""

    edits: tuple[Edit, ...]
    size: int
    rank: int
    """How far down the lists of candidates it goes; 0 takes the first of each."""

    @property
    def label(self) -> str:
        """What it does, in a few words."""
        return "; ".join(edit.label for edit in self.edits)


def covers(text: str, findings: Sequence[Finding], options: Sequence[list[Edit]]) -> list[Cover]:
    """All sets, by the tokens they change, then by the order of the candidates.

    A finding without a candidate is left to the others: it may be their consequence.
    """
    found: dict[frozenset[Edit], Cover] = {}

    def covered(i: int, chosen: tuple[Edit, ...]) -> bool:
        """By an edit for several faults, or by the very edit that would come first here."""
        return any(
            (len(edit.covers) > 1 and findings[i].code in edit.covers)
            or edit.changes == options[i][0].changes
            for edit in chosen
        )

    def extend(i: int, chosen: tuple[Edit, ...], rank: int) -> None:
        if len(found) >= _MOST:
            return
        if i == len(findings):
            if chosen and _fits(text, chosen):
                size = sum(edit.size(text) for edit in chosen)
                found.setdefault(frozenset(chosen), Cover(chosen, size, rank))
        elif not options[i] or covered(i, chosen):
            extend(i + 1, chosen, rank)
        else:
            for place, edit in enumerate(options[i]):
                extend(i + 1, chosen if edit in chosen else (*chosen, edit), rank + place)

    extend(0, (), 0)
    return sorted(
        found.values(),
        key=lambda cover: (cover.rank > 0 and not _joint(cover), cover.size, cover.rank),
    )


def _joint(cover: Cover) -> bool:
    return any(len(edit.covers) > 1 for edit in cover.edits)


def _fits(text: str, edits: tuple[Edit, ...]) -> bool:
    try:
        compose(text, edits)
    except ConflictError:
        return False
    return True


def rivals(chosen: Cover, others: Sequence[Cover]) -> list[Cover]:
    """Covers that change as little and differ in kind: one edit does the work of several."""

    def joint(cover: Cover) -> set[frozenset[str]]:
        return {edit.covers for edit in cover.edits if len(edit.covers) > 1}

    return [
        other
        for other in others
        if other is not chosen and other.size <= chosen.size and joint(other) != joint(chosen)
    ]
