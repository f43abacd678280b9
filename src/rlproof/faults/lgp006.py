"""LGP006: the log-softmax runs over another axis than the vocabulary."""

from __future__ import annotations

from collections.abc import Iterator
from math import log

from rlproof.faults.extraction import sightings
from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Scoring, Seen

_OVER = {"slots": "the slots of a row", "rows": "the rows", "everything": "the whole array"}


def detect(seen: Seen) -> Iterator[Sighting]:
    """All logits 0 and V words: every log-prob must be −ln V."""
    for scorer in seen.log_probs:
        over = _OVER.get(str(scorer.point.get("normalised_over")))
        added_up = scorer.point.get("reduction") == "sum"
        if over is None or (added_up and "pairing" in scorer.point):
            continue
        got = scorer.run(Scoring([[scorer.line(0.0)] * 3] * 2, [[0, 0, 0]] * 2))[0]
        right = -scorer.sign * log(scorer.words) * (3 if added_up else 1)
        yield Sighting(
            scorer.where["normaliser"],
            f"probabilities sum to 1 over {over}, not over the vocabulary",
            Evidence(
                f"2 rows of 3 slots, {scorer.words} words, all logits 0: log-probs of the "
                "first row",
                [rounded(x, 5) for x in got],
                [rounded(right, 5)] * len(got),
            ),
        )
    yield from sightings(
        seen,
        "axis",
        "normaliser",
        "probabilities sum to 1 over another axis than the vocabulary",
    )


FAULT = Fault(
    code="LGP006",
    name="wrong-vocabulary-axis",
    severity=Severity.ERROR,
    summary="normalised over the wrong axis",
    remedy="take the log-softmax over the axis of words, the last one",
    views="C",
    detect=detect,
)
