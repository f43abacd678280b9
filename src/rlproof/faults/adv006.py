"""ADV006: the stabiliser is smaller than the rounding of the std it is added to."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Seen

_HARMFUL = 0.5  # of the advantage that a real difference of one std would give


def detect(seen: Seen) -> Iterator[Sighting]:
    """Equal rewards whose mean is rounded get an advantage in spite of the eps."""
    for function in seen.advantages:
        failed = function.facts["rounded_failures"]
        if not failed or "eps_place" not in function.point or function.facts["equal_failures"]:
            continue
        trial = max(failed, key=lambda t: max(map(abs, t.got or [0.0])))
        size = max(map(abs, trial.got or [0.0]))
        eps = float(function.point["eps"])
        if function.point["eps_place"] == "sqrt(max(var, eps))":
            eps = eps**0.5  # as it is written: the least std
        yield Sighting(
            function.where["division"],
            f"eps = {eps:g} is below the rounding of this dtype: equal rewards "
            "are pushed up or down together",
            Evidence(
                f"rewards [{trial.rewards[0]:g}] * {len(trial.rewards)}, one group: "
                "largest |advantage|",
                rounded(size, 4),
                0.0,
            ),
            Severity.WARNING if size > _HARMFUL else Severity.NOTE,
        )


FAULT = Fault(
    code="ADV006",
    name="eps-below-rounding",
    severity=Severity.WARNING,
    summary="eps too small for the dtype: fp32, G = 10, reward 0.7, eps 1e-8 gives ±0.8",
    remedy="use an eps far above the rounding of the mean (1e-4 in float32), or compute in float64",
    views="C",
    detect=detect,
)
