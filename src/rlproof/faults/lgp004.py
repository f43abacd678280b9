"""LGP004: log-probs that overflow or become −inf."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rlproof.faults.extraction import sightings
from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import LogProbsSeen, Place, Seen

_BEYOND_FLOAT32 = 120.0


def detect(seen: Seen) -> Iterator[Sighting]:
    """One large logit among zeros. float32 fails at 120; float64 only beyond 709: a note."""
    for scorer in seen.log_probs:
        bad = [e for e in scorer.facts["extremes"] if _fails(e)]
        if not bad or not scorer.point:
            continue
        worst = bad[0]
        single = worst.size <= _BEYOND_FLOAT32
        kind = "float32" if single else "float64"
        yield Sighting(
            _place(scorer, worst),
            f"no maximum is subtracted before exp: {kind} fails where two logits are "
            f"{worst.size:g} apart",
            Evidence(
                f"logits {scorer.shown(f'{worst.size:g}')}, {kind}: log-prob of token {worst.token}"
                f"{scorer.summed}",
                worst.error.kind if worst.error else str(worst.got),
                -scorer.sign * scorer.times * worst.size * worst.token + 0.0,
            ),
            Severity.ERROR if single else Severity.NOTE,
        )
    yield from sightings(
        seen,
        "overflow",
        "normaliser",
        "no maximum is subtracted before exp: float32 fails where two logits are 120 apart",
    )


def _fails(extreme: Any) -> bool:
    return bool(
        (extreme.error and extreme.error.kind in ("OverflowError", "ValueError"))
        or (extreme.got is not None and abs(extreme.got) == float("inf"))
        or extreme.got != extreme.got
    )


def _place(scorer: LogProbsSeen, extreme: Any) -> Place:
    error = extreme.error
    if error and error.line and error.function:
        return Place(error.function, error.line, error.line)
    return scorer.where["normaliser"]


FAULT = Fault(
    code="LGP004",
    name="unstable-log-softmax",
    severity=Severity.ERROR,
    summary="log(softmax(x)), no max subtraction: −inf or overflow",
    remedy="use log_softmax, or subtract the largest logit before exp",
    views="C",
    detect=detect,
)
