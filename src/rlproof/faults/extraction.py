"""Sightings of functions that read log-probs off a model: proofs by problem, in one form."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Sighting
from rlproof.faults.seen import Seen


def sightings(seen: Seen, problem: str, landmark: str, message: str) -> Iterator[Sighting]:
    """One for every line that has this problem; a helper may show it in several functions."""
    lines: set[int] = set()
    for one in seen.extractions:
        where = one.where[landmark]
        if problem in one.proofs and where.line not in lines:
            lines.add(where.line)
            yield Sighting(where, message, one.proofs[problem])
