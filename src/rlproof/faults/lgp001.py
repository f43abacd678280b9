"""LGP001: a temperature is taken and never used."""

from __future__ import annotations

from collections.abc import Iterator
from math import log, sqrt

from rlproof.faults.extraction import sightings
from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Scoring, Seen

_MESSAGE = "the temperature changes nothing: tokens sampled at another one than 1 are scored at 1"


def detect(seen: Seen) -> Iterator[Sighting]:
    """The same logits with temperatures 1 and 2 give the same log-probs."""
    for scorer in seen.log_probs:
        unused = scorer.facts.get("unused_on_purpose")
        if scorer.point.get("temperature") == "ignored" and not unused:
            line = scorer.line(log(3.0))
            got = [scorer.run(Scoring([[line, line]], [[0, 0]], heat))[0][0] for heat in (1.0, 2.0)]
            right = [log(top / (top + scorer.words - 1)) for top in (3.0, sqrt(3))]
            yield Sighting(
                scorer.where["function"],
                _MESSAGE,
                Evidence(
                    f"logits {scorer.shown('ln 3')}, temperatures 1 and 2: log-prob of token 0"
                    f"{scorer.summed}",
                    [rounded(x) for x in got],
                    [rounded(scorer.sign * scorer.times * x) for x in right],
                ),
            )
    yield from sightings(seen, "temperature ignored", "function", _MESSAGE)
    yield from seen.written("LGP001")


FAULT = Fault(
    code="LGP001",
    name="missing-temperature",
    severity=Severity.ERROR,
    summary="sampled at T, scored at 1",
    remedy="divide the logits by the temperature that the tokens were sampled at",
    views="CRDS",
    detect=detect,
)
