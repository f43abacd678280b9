"""STP015: the loss of a micro-batch is divided by the number of accumulated ones twice."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Severity, rounded
from rlproof.watch.computed import words
from rlproof.watch.lossfits import OfLosses
from rlproof.watch.pointfit import divided
from rlproof.watch.rules.model import Alarm, Rule

_MEANS = ("token-mean", "sequence-mean", "prompt-mean")
"""Aggregations without a constant of their own, which could be anything."""


class Twice(OfLosses):
    """The factor of the losses, where accumulation is declared."""

    def alarms(self) -> Iterator[Alarm]:
        """Only where it is divided once more than it may be, and nothing else would do."""
        fits = self.fits
        if fits is None or (fits.facts.accumulation or 1) < 2 or not fits.uneven:
            return
        if not fits.coordinates.decides or fits.named():
            return
        k = fits.facts.accumulation or 1
        found = self._factor()
        if found is None:
            return
        factor, what = found
        steps = fits.coordinates.steps
        right, twice = divided(fits.facts)
        meant = "its denominator is that of all" if right == 1 else f"1, or 1/{k} of a mean"
        yield Alarm(
            f"a recorded micro-batch is 1/{round(1 / twice)} of {what}: it is divided by the {k} "
            "accumulated batches twice",
            Evidence(
                f"{steps} recorded micro-batches, {k} accumulated: factor of the objective; "
                f"{meant}",
                rounded(factor, 6),
                rounded(right, 6),
            ),
            self.first,
            steps,
            steps,
        )

    def _factor(self) -> tuple[float, str] | None:
        """The factor that is one division too small, and of what."""
        assert self.fits is not None
        right, twofold = divided(self.fits.facts)
        points = self.fits.points.twice_divided(self.fits.coordinates.batches)
        if points:
            return points[0].factor, ", ".join(one.name for one in points)
        if 300 * self.fits.coordinates.rounding > twofold:  # then no factor is known to 1 %
            return None
        fits = self.fits.coordinates.fits()
        means = [
            fit
            for fit in fits
            if len(fit.faults) == len(fits[0].faults) and fit.weighting.aggregation in _MEANS
        ]

        def close(factor: float, expected: float) -> bool:
            return abs(abs(factor) - expected) <= 1e-3 * expected

        if any(close(fit.factor, once) for fit in means for once in (1.0, right)):
            return None
        twice = [fit for fit in means if close(fit.factor, twofold)]
        return (abs(twice[0].factor), words(twice[0]).split(" ×")[0]) if twice else None

    def skipped(self) -> Iterator[str]:
        """The same, where accumulation is declared."""
        if self.fits is not None and (self.fits.facts.accumulation or 1) > 1:
            yield from super().skipped()


RULE = Rule(
    code="STP015",
    name="accumulation-divided-twice",
    severity=Severity.ERROR,
    about="step",
    summary="the loss of a micro-batch is 1/k² of the objective, k batches being accumulated",
    remedy="divide by the number of accumulated batches in one place",
    start=Twice,
    needs=("loss", "new_logps", "advantages"),
    faults=("AGG002",),
)
