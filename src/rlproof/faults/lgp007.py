"""LGP007: the log-probs that a loss trains on carry no gradient."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """Parameters that require a gradient, and log-probs that don't; a loss gets them as new."""
    for one in seen.extractions:
        if one.facts.get("trains") and "no gradient" in one.proofs:
            yield Sighting(
                one.where["function"],
                "these log-probs carry no gradient, and a loss is given them as the new ones",
                one.proofs["no gradient"],
            )


FAULT = Fault(
    code="LGP007",
    name="log-probs-without-gradient",
    severity=Severity.ERROR,
    summary="computed outside the differentiated function",
    remedy="compute the new log-probs with gradients on; no_grad is for old and reference ones",
    views="CR",
    detect=detect,
)
