"""MSK003: the sum and the count use different masks."""

from __future__ import annotations

from collections.abc import Iterator
from math import log

from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Batch, LossSeen, Seen

_BOTH, _FIRST = [[1, 1]], [[1, 0]]


def detect(seen: Seen) -> Iterator[Sighting]:
    """A token that one mask keeps and the other drops is left out of one of sum and count."""
    for loss in seen.losses:
        if "mask" not in loss.slots or "aggregation" not in loss.point:
            continue
        kept, dropped = _slopes(loss, _BOTH, _BOTH), _slopes(loss, _FIRST, _FIRST)
        for first, second in ((_BOTH, _FIRST), (_FIRST, _BOTH)):
            got = _slopes(loss, first, second)
            if _same(got, kept) or _same(got, dropped):
                continue
            expected = dropped if abs(got[1]) < 1e-9 else kept
            if abs(got[0]) < 1e-9 or _same(got[:1], expected[:1]):
                continue
            yield Sighting(
                loss.where["reduce"],
                "one mask decides what is added up, the other one what it is divided by",
                Evidence(
                    f"two tokens, A = 1, π_new = π_old, first mask {first[0]}, second mask "
                    f"{second[0]}: ∂loss/∂logp of the first token",
                    rounded(got[0]),
                    rounded(expected[0]),
                ),
            )
            break
    for place, facts in seen.other:
        if found := facts.get("two_windows"):
            yield Sighting(
                place,
                "one mask is cut at its end here and at its start in the rest of the loss: where "
                "the two differ, a token counts and has no gradient",
                Evidence(
                    "two tokens behind one of the prompt, A = 1, π_new = π_old, mask [0, 1, 1]: "
                    "∂loss/∂logp of both tokens",
                    [rounded(x) for x in found],
                    "the same for both",
                ),
            )


def _slopes(loss: LossSeen, first: list[list[int]], second: list[list[int]]) -> list[float]:
    half = [[log(0.5), log(0.5)]]
    batch = Batch(half, half, half, [1.0], first, second=second)
    return loss.run(batch).gradient[0]


def _same(one: list[float], other: list[float]) -> bool:
    return all(abs(a - b) < 1e-6 for a, b in zip(one, other, strict=True))


FAULT = Fault(
    code="MSK003",
    name="two-masks",
    severity=Severity.ERROR,
    summary="numerator and denominator use different masks",
    remedy="multiply the masks once, and use the product for the sum and for the count",
    views="C",
    detect=detect,
)
