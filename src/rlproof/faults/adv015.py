"""ADV015: baseline minus reward."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """The better completion gets the lower advantage."""
    for function in seen.advantages:
        if function.point.get("sign") == "inverted":
            got = [round(x, 4) for x in function.run([0.0, 1.0], 2)]
            yield Sighting(
                function.where["difference"],
                "the advantage is baseline minus reward: the better completion gets the lower one",
                Evidence("rewards [0, 1], one group", got, [-x for x in got]),
            )


FAULT = Fault(
    code="ADV015",
    name="advantage-sign",
    severity=Severity.ERROR,
    summary="baseline minus reward",
    remedy="subtract the baseline from the reward",
    views="CR",
    detect=detect,
)
