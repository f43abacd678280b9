"""MSK014: the mask of the token before, or after, the one that it is laid on."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, log
from typing import Any

from rlproof.faults.extraction import sightings
from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import GaugeSeen, Seen

_MESSAGE = (
    "tokens[1:] are scored under mask[:-1]: the first token of the completion is left out, and the "
    "one behind its end is trained"
)
_LOGITS = [[0.0, 1.0, 2.0], [2.0, 0.0, -1.0], [0.5, 3.0, 0.0], [1.0, 1.5, -2.0]]
_TOKENS = [0, 2, 1, 0]
_REAL = 2  # the only slot of the mask


def detect(seen: Seen) -> Iterator[Sighting]:
    """Only one slot is real: whose token is scored?"""
    yield from sightings(seen, "mask", "mask", _MESSAGE)
    for gauge in seen.gauges:
        if gauge.role == "supervised-loss":
            yield from _supervised(gauge)


def _supervised(gauge: GaugeSeen) -> Iterator[Sighting]:
    mask = [[int(t == _REAL) for t in range(len(_TOKENS))]]
    got: Any = gauge.run({"logits": [_LOGITS], "tokens": [_TOKENS], "mask": mask})
    if not isinstance(got, int | float):
        return
    right, after = (_surprise(slot) for slot in (_REAL, _REAL + 1))
    if abs(got - after) < 1e-4 < abs(got - right):
        yield Sighting(
            gauge.where["mask"],
            _MESSAGE,
            Evidence(
                f"logits {_LOGITS}, tokens {_TOKENS}, mask {mask[0]}: loss",
                rounded(got),
                rounded(right),
            ),
        )


def _surprise(slot: int) -> float:
    """−log π of the token in a slot, by the logits of the slot before."""
    line = _LOGITS[slot - 1]
    return log(sum(map(exp, line))) - line[_TOKENS[slot]]


FAULT = Fault(
    code="MSK014",
    name="mask-one-slot-off",
    severity=Severity.ERROR,
    summary="tokens[1:] under mask[:-1]: the first token is left out, one behind the end trained",
    remedy="shift the mask like the tokens: mask[:, 1:]",
    views="C",
    detect=detect,
)
