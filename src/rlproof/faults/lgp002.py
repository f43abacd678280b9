"""LGP002: the temperature divides log-probs and not logits."""

from __future__ import annotations

from collections.abc import Iterator
from math import log, sqrt

from rlproof.faults.extraction import sightings
from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Scoring, Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """A token of probability ½ scored at temperature 2."""
    for scorer in seen.log_probs:
        if scorer.point.get("temperature") != "on log-probs":
            continue
        line, others = scorer.line(log(3.0)), scorer.words - 1
        right = scorer.sign * scorer.times * log(sqrt(3) / (sqrt(3) + others))
        got = scorer.run(Scoring([[line, line]], [[0, 0]], 2.0))[0]
        yield Sighting(
            scorer.where["temperature"],
            "the temperature divides log-probs: what comes out is no distribution",
            Evidence(
                f"logits {scorer.shown('ln 3')}, temperature 2: log-prob of token 0, whose "
                f"probability is √3/(√3 + {others}){scorer.summed}",
                rounded(got[0]),
                rounded(right),
            ),
        )
    yield from sightings(
        seen,
        "temperature on log-probs",
        "temperature",
        "the temperature divides log-probs: what comes out is no distribution",
    )


FAULT = Fault(
    code="LGP002",
    name="temperature-on-log-probs",
    severity=Severity.ERROR,
    summary="log-probs divided instead of logits",
    remedy="divide the logits by the temperature, then take the log-softmax",
    views="C",
    detect=detect,
)
