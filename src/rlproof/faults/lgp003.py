"""LGP003: a token is scored with the logits of a later slot."""

from __future__ import annotations

from collections.abc import Iterator
from math import log

from rlproof.faults.extraction import sightings
from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Scoring, Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """Two slots with other logits: the first token gets those of the second slot.

    Logits of slot t score either token t, if labels are shifted already, or token t + 1.
    Both are left alone; that logits score an earlier token is right under neither.
    """
    for scorer in seen.log_probs:
        pairing = str(scorer.point.get("pairing", ""))
        added_up = pairing.endswith("wrapped") and "reduction" in scorer.point
        if not pairing.startswith("later logits") or added_up:
            continue
        flat, steep = scorer.line(0.0), scorer.line(log(3.0))
        got = scorer.run(Scoring([[flat, steep]], [[0, 0]]))[0]
        yield Sighting(
            scorer.where["pairing"],
            "every token is scored with the logits of a later slot, which have seen it",
            Evidence(
                f"one row of two tokens 0; logits {scorer.shown('0')} in the first slot, "
                f"{scorer.shown('ln 3')} in the second: first log-prob returned",
                rounded(got[0]),
                rounded(-scorer.sign * log(scorer.words)),
            ),
        )
    yield from sightings(
        seen,
        "pairing",
        "slice",
        "every token is scored with logits of another slot than the one before it",
    )
    yield from sightings(
        seen,
        "window",
        "window",
        "the log-probs returned for the completion are those of the tokens one slot earlier",
    )
    yield from sightings(
        seen,
        "one window",
        "window",
        "prompts have several lengths, and one window of logits is kept for all rows: the shorter "
        "ones lose their first tokens and get padding for them",
    )


FAULT = Fault(
    code="LGP003",
    name="shifted-gather",
    severity=Severity.ERROR,
    summary="position t scored with another position's logits",
    remedy="score tokens[:, 1:] with logits[:, :-1]",
    views="CR",
    detect=detect,
)
