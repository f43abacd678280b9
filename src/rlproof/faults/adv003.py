"""ADV003: every group has one member."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """A group size of 1 is in use, and one member alone gets its raw reward or no number."""
    for function in seen.advantages:
        if found := function.facts.get("one_member"):
            place, got, setting = found
            what = f"`{setting}` is 1 by default" if setting else "the group size is 1"
            yield Sighting(
                place,
                f"{what}: a group of one member has no baseline to be compared with",
                Evidence(
                    "rewards [1, 0], group_size 1: advantages",
                    got,
                    "a comparison with other completions of the same prompt",
                ),
                Severity.WARNING if setting else None,
            )
    yield from seen.written("ADV003")


FAULT = Fault(
    code="ADV003",
    name="one-member-groups",
    severity=Severity.ERROR,
    summary="every group has one member, so the advantage is the raw reward or no number",
    remedy="sample at least two completions a prompt and pass that as the group size",
    views="CS",
    detect=detect,
)
