"""SUR007: a clip range that can't act as one."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """A default that leaves no room below, a clip to one number, a bound of the other side."""
    for place, facts in seen.other:
        if found := facts.get("open_below"):
            bound = 1 - found["value"]
            yield Sighting(
                place,
                f"{found['name']} = {found['value']:g} puts the lower bound at {bound:g}: "
                "no ratio is ever below it, so the clip never acts on that side",
                Evidence(
                    "one token, π_new = 0.05, π_old = 0.5, A = −1, default clip range, beta = 0: "
                    "∂loss/∂logp; a lower range below 0.9 stops it",
                    found["pull"],
                    0.0,
                ),
            )
        if found := facts.get("swapped_bounds"):
            yield Sighting(
                place,
                "the bounds of the clip are swapped: whatever the ratio is, it becomes "
                f"{found['bound']:.4g}",
                Evidence(
                    f"one token, π_new = π_old = 0.5, A = {found['sign']}, beta = 0: ∂loss/∂logp",
                    rounded(found["slope"]) + 0.0,
                    rounded(found["meant"]),
                ),
            )
        if found := facts.get("crossed_bounds"):
            yield Sighting(
                place,
                f"the {found['side']} bound is made of {found['other']}: {found['own']} "
                "changes nothing there",
                Evidence(
                    f"one token, π_new / π_old = {found['ratio']:g}, A = {found['sign']}, "
                    f"beta = 0, lower and upper range {_pairs(found['ranges'])}: "
                    "what it adds to the loss",
                    found["got"],
                    found["meant"],
                ),
            )


def _pairs(ranges: list[tuple[float, float]]) -> str:
    return ", then ".join(f"{low:g} and {high:g}" for low, high in ranges)


FAULT = Fault(
    code="SUR007",
    name="impossible-clip-range",
    severity=Severity.ERROR,
    summary="lower eps ≥ 1, bounds or their ranges swapped, a cap typed as an eps",
    remedy="clip to [1 − eps, 1 + eps] with 0 < eps < 1",
    views="CS",
    detect=detect,
)
