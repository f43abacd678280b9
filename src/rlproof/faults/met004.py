"""MET004: log-probs above 0."""

from __future__ import annotations

from collections.abc import Iterator
from math import log

from rlproof.faults.extraction import sightings
from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Place, Scoring, Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """Logits that were never normalised, or a positive number in a padded slot."""
    for scorer in seen.log_probs:
        if scorer.point.get("log_probs") == "unnormalised" and "sign" not in scorer.point:
            line, total = scorer.line(log(3.0)), scorer.words + 2
            got = scorer.run(Scoring([[line, line]], [[0, 0]]))[0]
            yield Sighting(
                scorer.where["pairing"],
                "what is returned as log-probs are logits: nothing is normalised",
                Evidence(
                    f"logits {scorer.shown('ln 3')}: log-prob of token 0, whose probability is "
                    f"3/{total}"
                    f"{scorer.summed}",
                    rounded(got[0]),
                    rounded(scorer.times * log(3 / total)),
                ),
            )
        elif scorer.facts["padded"] and scorer.point.get("sign") != "negative":
            yield from _sentinel(scorer.facts["padded"], scorer.where["function"])
    yield from sightings(
        seen,
        "unnormalised",
        "picking",
        "what is returned as log-probs are logits: nothing is normalised",
    )


def _sentinel(padded: tuple[Scoring, list[list[float]]], where: Place) -> Iterator[Sighting]:
    scoring, rows = padded
    found = [x for row in rows for x in row if 1e-6 < x < float("inf")]
    if found:
        yield Sighting(
            where,
            "padded slots get a positive number, which passes for a log-prob wherever a mask "
            "is forgotten",
            Evidence(
                f"two rows with mask {scoring.mask}: largest log-prob returned",
                rounded(max(found)),
                "at most 0",
            ),
            Severity.WARNING,
        )


FAULT = Fault(
    code="MET004",
    name="positive-log-prob",
    severity=Severity.ERROR,
    summary="a sentinel or a sign error in stored log-probs",
    remedy="return log-probs of at most 0, and 0 in padded slots",
    views="CDM",
    detect=detect,
)
