"""The fits of the recorded losses of one run, shared by the rules that ask for them."""

from __future__ import annotations

from dataclasses import dataclass

from rlproof.watch.facts import Facts
from rlproof.watch.lossfit import LossFit
from rlproof.watch.pointfit import PointFit
from rlproof.watch.seen import StepSeen
from rlproof.watch.signal import MANY, SPARSE


@dataclass(slots=True)
class LossFits:
    """By coordinates, and by the published points as they stand."""

    facts: Facts
    """What is declared: on the command line, or in the first record."""
    coordinates: LossFit
    points: PointFit
    count: int = 0
    """Records so far."""


def of_run(step: StepSeen, facts: Facts) -> LossFits:
    """The fits over all steps of this one's run, this one included."""
    fits: LossFits | None = step.shared.get("losses")
    if fits is None:
        known = facts.over(step.declared)
        fits = step.shared["losses"] = LossFits(known, LossFit(known), PointFit(known))
    if step.shared.get("losses seen") is not step:
        step.shared["losses seen"] = step
        fits.count += 1
        if fits.count <= MANY or fits.count % SPARSE == 0:
            fits.coordinates.see(step)
            fits.points.see(step)
    return fits
