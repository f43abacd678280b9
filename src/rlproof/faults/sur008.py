"""SUR008: a clip range is accepted and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Batch, LossSeen, Seen

_CLIPS = {"clip range", "lower clip range", "upper clip range"}


def detect(seen: Seen) -> Iterator[Sighting]:
    """The single-token term is the same for two clip ranges, or caps, far outside both."""
    for loss in seen.losses:
        yield from _cap(loss)
        ignored = loss.slots & _CLIPS and not loss.facts.get("clip_matters", True)
        known = "surrogate" in loss.point and not loss.facts.get("unused_on_purpose")
        on_policy = loss.point.get("ratio") == "detached" and "old log-probs" not in loss.slots
        if not (ignored and known) or on_policy:  # ρ = 1 on purpose: nothing to clip
            continue
        batch = Batch([[-0.1]], [[-2.0]], [[-0.1]], [1.0], [[1]])
        got = [loss.run(batch.but(low=eps, high=eps)).value for eps in (0.2, 0.5)]
        expected = [
            loss.predict(_clipping(loss.point), batch.but(low=e, high=e)) for e in (0.2, 0.5)
        ]
        yield Sighting(
            loss.where["clip"],
            "the clip range is a parameter that changes nothing",
            Evidence(
                "one token, ρ = e^1.9 = 6.69, A = 1, beta = 0: loss at clip range 0.2 and at 0.5",
                [rounded(x) for x in got],
                [rounded(answer.value) for answer in expected],
            ),
        )


def _cap(loss: LossSeen) -> Iterator[Sighting]:
    """A cap for tokens with A < 0 that the function never reads."""
    facts = loss.facts
    known = "surrogate" in loss.point and "surrogate_weight" in loss.point
    if not facts.get("cap_unread") or facts.get("unused_on_purpose") or not known:
        return
    batch = Batch([[-0.1]], [[-3.0]], [[-0.1]], [-1.0], [[1]])
    got = [loss.run(batch.but(cap=cap)).value for cap in (3.0, 5.0)]
    yield Sighting(
        loss.where["surrogate"],
        "the cap of the dual clip is a parameter that nothing reads",
        Evidence(
            "one token, ρ = e^2.9 = 18.2, A = −1, beta = 0: loss at cap 3 and at cap 5",
            [rounded(x) for x in got],
            [3.0, 5.0],
        ),
    )


def _clipping(point: object) -> dict[str, str | float]:
    """The same point with a clip that follows the arguments."""
    known = dict(point)  # type: ignore[call-overload]
    known.setdefault("aggregation", "token-mean")
    known.setdefault("surrogate_weight", -1.0)
    return {**known, "ratio": "token", "surrogate": "min-clip", "clip_from": "arguments"}


FAULT = Fault(
    code="SUR008",
    name="clip-parameter-ignored",
    severity=Severity.ERROR,
    summary="eps (or dual-clip c) is accepted and changes nothing",
    remedy="use the parameter as the clip range",
    views="CS",
    detect=detect,
)
