"""MSK011: what is given as the mask is none."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """In the recorded run, a mask holds a number below 0 or above 1."""
    for loop in seen.loops:
        if found := loop.facts.get("odd_mask"):
            yield Sighting(
                loop.where["odd_mask"],
                f"the mask given to the loss holds {found['odd']:g}",
                Evidence(
                    f"{loop.function}, recorded: first numbers of the mask given to the loss",
                    found["values"],
                    "only 0 and 1",
                ),
            )
    yield from seen.written("MSK011")


FAULT = Fault(
    code="MSK011",
    name="not-a-mask",
    severity=Severity.ERROR,
    summary="the mask argument carries other values",
    remedy="pass the mask, by keyword",
    views="CR",
    detect=detect,
)
