"""ADV008: advantages that are group z-scores are normalised over the batch as well."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Seen

_GROUP_STDS = {"population-std", "sample-std"}


def detect(seen: Seen) -> Iterator[Sighting]:
    """In one function; or group z-scores in one, whitened over the batch by the loss."""
    for function in seen.advantages:
        if function.facts.get("normalised_twice"):
            got = [round(x, 4) for x in function.facts["settled"]]
            live = round(function.run([0.0, 1.0, 0.0, 1.0], 2)[1], 4)
            yield Sighting(
                function.where["again"],
                "advantages in units of their group's std are normalised over the batch again: "
                "the size of one prompt's advantages depends on how many other prompts have any",
                Evidence(
                    "rewards [0, 1, 1, 1], group_size 2; with [0, 1] as the second group the "
                    f"first has ±{live:g}",
                    got,
                    [-live, live, 0.0, 0.0],
                ),
            )
    if any(function.point.get("scale") in _GROUP_STDS for function in seen.advantages):
        yield from _in_losses(seen)


def _in_losses(seen: Seen) -> Iterator[Sighting]:
    for place, facts in seen.other:
        if slopes := facts.get("whitens_advantages"):
            yield Sighting(
                place,
                "the loss normalises over its batch what was already divided by the group's std",
                Evidence(
                    "two rows of one token, ρ = 1: ∂loss/∂logp of the first row at A = (1, −1) "
                    "and at A = (2, −2)",
                    [rounded(x) for x in slopes],
                    [rounded(factor * slopes[0]) for factor in (1, 2)],
                ),
            )


FAULT = Fault(
    code="ADV008",
    name="normalised-twice",
    severity=Severity.WARNING,
    summary="group normalisation followed by batch whitening",
    remedy="normalise once: over the group, or (after subtracting the group mean) over the batch",
    views="CS",
    detect=detect,
)
