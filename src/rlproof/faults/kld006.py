"""KLD006: a KL estimate with the wrong sign."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import log

from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import GaugeSeen, Seen

_HALF, _QUARTER = [[log(0.5)]], [[log(0.25)]]
_SIGNED = {"penalty", "reward", "rewards", "bonus", "objective", "neg", "negative", "forward"}
_SAYS_SO = r"negative|minus|reward|objective|\bref\w*\s*(‖|\|\||to)|forward"
_SAYS_K3 = r"\bk3\b|low.?var"


def detect(seen: Seen) -> Iterator[Sighting]:
    """Two tokens, one on each side of the reference."""
    for gauge in seen.gauges:
        if gauge.role != "divergence-estimate" or _means_the_sign(gauge):
            continue
        reference = "reference log-probs" in gauge.slots
        other = "reference log-probs" if reference else "old log-probs"
        pair = _value(gauge, other, _HALF, _QUARTER), _value(gauge, other, _QUARTER, _HALF)
        found = _wrong(gauge, *pair, reference)
        if found:
            message, expected = found
            name = "ref" if reference else "old"
            yield Sighting(
                gauge.where["result"],
                message,
                Evidence(f"one token, π_new = 0.5, π_{name} = 0.25", rounded(pair[0]), expected),
            )


def _means_the_sign(gauge: GaugeSeen) -> bool:
    parts = set(gauge.function.lower().split("_"))
    return bool(parts & _SIGNED) or bool(re.search(_SAYS_SO, gauge.doc, re.IGNORECASE))


def _value(gauge: GaugeSeen, other: str, new: list[list[float]], ref: list[list[float]]) -> float:
    got = gauge.run({"new log-probs": new, other: ref, "old log-probs": ref, "mask": [[1]]} | {
        other: ref})  # fmt: skip
    while isinstance(got, list) and got:
        got = got[0]
    return float(got) if isinstance(got, int | float) else 0.0


def _wrong(
    gauge: GaugeSeen, up: float, down: float, reference: bool
) -> tuple[str, float | str] | None:
    """Both below 0; or what is −k1; or one below 0 where the text says that none is."""
    if up < -1e-6 and down < -1e-6:
        return "the estimate is below 0 on either side of the other policy", rounded(-up)
    swapped = abs(up + log(2)) < 1e-6 and abs(down - log(2)) < 1e-6
    if swapped and reference:
        return (
            "log π_ref − log π_new: its mean over tokens of the policy is minus the KL",
            rounded(log(2)),
        )
    if min(up, down) < -1e-6 and re.search(_SAYS_K3, gauge.doc, re.IGNORECASE):
        return "below 0, though the text says k3, which can't be", "at least 0"
    return None


FAULT = Fault(
    code="KLD006",
    name="negative-kl",
    severity=Severity.ERROR,
    summary="mean of a k3 metric below rounding, or ref − new logged as KL",
    remedy="use new - ref, or k3 = exp(ref - new) - (ref - new) - 1",
    views="CM",
    detect=detect,
)
