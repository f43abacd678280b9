"""MET001: the clip fraction ignores the mask, the clip range in use, or one side."""

from __future__ import annotations

from collections.abc import Iterator
from math import log

from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import MetricSeen, Seen

_ONE_SIDED = {"high", "low", "upper", "lower", "up", "upside", "above", "below", "max", "min",
              "down", "downside"}  # fmt: skip
_ZERO, _UP, _DOWN = log(0.2), log(0.3), log(0.1)
_FAR = (log(0.9), log(0.01))  # ratios of 4.5 and 0.05: outside of any range that is one


def detect(seen: Seen) -> Iterator[Sighting]:
    """The function on hand cases, then the clip range it is given in a recorded run."""
    for metric in seen.metrics:
        yield from _function(metric)
        yield from _always_zero(metric)
        yield from _without_advantages(metric)
    for loop in seen.loops:
        if found := loop.facts["metric_eps"]:
            settings = ", ".join(f"{k}={v}" for k, v in sorted(found["settings"].items()))
            yield Sighting(
                loop.where["metric_eps"],
                "the clip fraction is measured at another clip range than the loss uses: "
                "clip_eps is not forwarded",
                Evidence(
                    f"{loop.function}({settings}): clip range given to the metric",
                    found["measured"],
                    found["used"],
                ),
                Severity.WARNING,
            )


def _function(metric: MetricSeen) -> Iterator[Sighting]:
    """Only for a function that is a clip fraction at all: ½ where one of two ratios is out."""
    share = metric.run([[_UP, _ZERO]], [[_ZERO, _ZERO]], [[1, 1]], 0.2)
    if abs(share + 0.5) < 1e-6:
        case = "ρ = (1.5, 1), clip range 0.2"
        yield Sighting(
            metric.where["function"], "the share is negative", Evidence(case, share, 0.5)
        )
    if abs(share - 0.5) > 1e-6:
        return
    cases = [
        ("mask", "padded slots are counted", "ρ = (1, 1.5), the second padded",
         metric.run([[_ZERO, _UP]], [[_ZERO, _ZERO]], [[1, 0]], 0.2), 0.0),
        ("mask", "padded slots are counted in the denominator", "ρ = (1.5, 1), the second padded",
         metric.run([[_UP, _ZERO]], [[_ZERO, _ZERO]], [[1, 0]], 0.2), 1.0),
        ("clip range", "the clip range is ignored", "ρ = 1.5, clip range 0.9",
         metric.run([[_UP]], [[_ZERO]], [[1]], 0.9), 0.0),
        ("", "ratios below the range are not counted", "ρ = 0.5, clip range 0.2",
         metric.run([[_DOWN]], [[_ZERO]], [[1]], 0.2, -1.0), 1.0),
    ]  # fmt: skip
    one_sided = _ONE_SIDED & set(metric.function.split("_")) or len(metric.bounds) == 1
    for slot, message, case, got, expected in cases:
        applies = slot in metric.slots if slot else not one_sided
        if applies and abs(got - expected) > 1e-6:
            yield Sighting(metric.where["function"], message, Evidence(case, got, expected))


def _always_zero(metric: MetricSeen) -> Iterator[Sighting]:
    """No token is ever outside: the ratio that is tested was clipped before."""
    if not metric.complete:
        return
    signs = (1.0, -1.0) if "advantages" in metric.slots else (1.0,)
    got = [
        metric.run([[new]], [[_ZERO]], [[1]], eps, sign)
        for sign in signs
        for new in _FAR
        for eps in (0.2, 0.02)
    ]
    if not any(got):
        yield Sighting(
            metric.where["clip"],
            "the clip fraction is 0 whatever the ratio is: what it tests is never outside",
            Evidence(
                "one token: clip fraction at ρ = 4.5 and ρ = 0.05, clip range 0.2",
                [rounded(got[0]), rounded(got[2])],
                [1.0, 1.0],
            ),
        )


def _without_advantages(metric: MetricSeen) -> Iterator[Sighting]:
    """Told the advantages, it counts the same tokens whatever their sign.

    A share of tokens outside of the range is a definition of its own, that needs no advantages.
    """
    if not metric.complete or "advantages" not in metric.slots:
        return
    up, down = (metric.run([[_UP]], [[_ZERO]], [[1]], 0.2, a) for a in (1.0, -1.0))
    low, lower = (metric.run([[_DOWN]], [[_ZERO]], [[1]], 0.2, a) for a in (1.0, -1.0))
    if min(up, down, low, lower) > 1 - 1e-6:
        yield Sighting(
            metric.where["test"],
            "it is told the advantages and counts the same tokens without them: of those outside "
            "of the range, the loss clips only where A > 0 is above it, or A < 0 below it",
            Evidence("one token, ρ = 1.5, A = −1, clip range 0.2", rounded(down), 0.0),
            Severity.WARNING,
        )
    if max(up, lower) < 1e-6 and min(down, low) > 1 - 1e-6:
        yield Sighting(
            metric.where["test"],
            "it counts the tokens that the loss does not clip: those above the range where A < 0, "
            "and below it where A > 0",
            Evidence(
                "one token, clip range 0.2: clip fraction at ρ = 1.5 with A = 1, and with A = −1",
                [rounded(up), rounded(down)],
                [1.0, 0.0],
            ),
        )


FAULT = Fault(
    code="MET001",
    name="clip-fraction-wrong",
    severity=Severity.ERROR,
    summary="ignores the mask or the clip_eps in use, or one side only",
    remedy="pass the clip range that the loss uses, and count real tokens on both sides of it",
    views="CR",
    detect=detect,
)
