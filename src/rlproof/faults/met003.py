"""MET003: a metric that takes a mask counts padded slots."""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from typing import Any

from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import GaugeSeen, Seen

_QUARTER, _HALF = log(0.25), log(0.5)
_OTHERS = ("old log-probs", "reference log-probs")


def detect(seen: Seen) -> Iterator[Sighting]:
    """One real token, and the same one with a padded slot behind it: one value for both."""
    for gauge in seen.gauges:
        if "mask" not in gauge.slots or gauge.role not in ("entropy", "divergence-estimate"):
            continue
        alone, padded = gauge.run(_values(gauge, 1)), gauge.run(_values(gauge, 2))
        pair = [x[0] if isinstance(x, list) and len(x) == 1 else x for x in (alone, padded)]
        if not all(isinstance(x, int | float) and x == x for x in pair):
            continue
        if abs(pair[0] - pair[1]) > 1e-6:
            yield Sighting(
                gauge.where["result"],
                "padded slots are counted, though the mask is at hand",
                Evidence(
                    f"{_shown(gauge)} in one real token, then with one padded slot behind it",
                    rounded(pair[1]),
                    rounded(pair[0]),
                ),
            )


def _values(gauge: GaugeSeen, width: int) -> dict[str, Any]:
    mask = [[1, 0][:width]]
    if "logits" in gauge.slots:
        return {"logits": [[[0.0, 0.0], [log(3.0), 0.0]][:width]], "mask": mask}
    others: dict[str, Any] = {name: [[_QUARTER, _QUARTER][:width]] for name in _OTHERS}
    return {"new log-probs": [[_HALF, log(0.75)][:width]], "mask": mask, **others}


def _shown(gauge: GaugeSeen) -> str:
    if "logits" in gauge.slots:
        return "logits (0, 0), (ln 3, 0) when padded,"
    return "π_new = 0.5, 0.75 when padded, and 0.25 for any other policy,"


FAULT = Fault(
    code="MET003",
    name="masked-tokens-in-metric",
    severity=Severity.ERROR,
    summary="padding in a mean",
    remedy="multiply by the mask and divide by its sum",
    views="CM",
    detect=detect,
)
