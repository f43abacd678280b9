"""LGP005: log-probs computed in half precision."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, log

from rlproof.faults.extraction import sightings
from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Scoring, Seen

_LOGIT = 8.3


def detect(seen: Seen) -> Iterator[Sighting]:
    """Exact logits go in, and what comes out is off in the third digit."""
    for scorer in seen.log_probs:
        if scorer.point.get("precision") != "low":
            continue
        line = scorer.line(_LOGIT)
        got = scorer.run(Scoring([[line, line]], [[1, 1]]))[0]
        right = -scorer.sign * scorer.times * log(exp(_LOGIT) + scorer.words - 1)
        if abs(got[0] - right) < 1e-3:
            continue
        yield Sighting(
            scorer.where["precision"],
            "log-probs are computed in half precision: exp(new − old) inherits the error",
            Evidence(
                f"logits {scorer.shown(f'{_LOGIT:g}')}: log-prob of token 1{scorer.summed}",
                rounded(got[0]),
                rounded(right),
            ),
        )
    yield from sightings(
        seen,
        "precision",
        "precision",
        "log-probs are computed in half precision: exp(new − old) inherits the error",
    )


FAULT = Fault(
    code="LGP005",
    name="low-precision-log-probs",
    severity=Severity.WARNING,
    summary="log-softmax in bf16/fp16",
    remedy="convert the logits to float32 before the log-softmax, for new and old log-probs alike",
    views="CR",
    detect=detect,
)
