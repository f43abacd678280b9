"""The fits of the recorded losses of one run, shared by the rules that ask for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rlproof.watch.facts import Facts
from rlproof.watch.lossfit import LossFit
from rlproof.watch.pointfit import Named, PointFit
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
    uneven: bool = False
    """Whether completions differ in length: otherwise a mean is a constant's division, too."""

    def named(self) -> list[Named]:
        """Published objectives that give the losses, with a bonus of another weight perhaps."""
        return self.points.named(self.coordinates.batches)

    def as_declared(self) -> bool:
        """Whether one of them has the declared weight of a bonus, or none is declared."""
        c = self.facts.entropy_coefficient
        if c is None or self.points.names():
            return bool(self.named())
        return any(abs(one.coefficient - c) <= 1e-2 * abs(c) for one in self.named() if one.bonus)

    def left_out(self) -> str:
        """Why losses are not compared, or nothing."""
        count = self.coordinates.left_out
        c = self.facts.entropy_coefficient
        return "" if not count else (
            f"the entropy is missing beside {count} recorded losses that hold a bonus of {c:g} "
            "of it, so that they can't be compared: record entropy="
        )  # fmt: skip


def of_run(step: StepSeen, facts: Facts) -> LossFits:
    """The fits over all steps of this one's run, this one included."""
    fits: LossFits | None = step.shared.get("losses")
    without = step.get("new_logps") is None  # a rollout alone, whose facts may be fewer
    if fits is None:
        known = facts.over(step.declared)
        fits = LossFits(known, LossFit(known), PointFit(known))
        if not without:
            step.shared["losses"] = fits
    if not without and step.shared.get("losses seen") is not step:
        step.shared["losses seen"] = step
        fits.count += 1
        if fits.count <= MANY or fits.count % SPARSE == 0:
            fits.uneven |= _uneven(step)
            fits.coordinates.see(step)
            fits.points.see(step)
    return fits


def _uneven(step: StepSeen) -> bool:
    lengths = step.lengths
    return lengths is not None and len(lengths) > 0 and bool((lengths != lengths[0]).any())


class OfLosses:
    """What rules about losses have in common: the fits, and what was left out of them."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.fits: LossFits | None = None
        self.first: float | None = None

    def see(self, step: StepSeen) -> None:
        """One recorded step, or a micro-batch of it."""
        self.first = step.step if self.first is None else self.first
        self.fits = of_run(step, self.facts)

    def skipped(self) -> Iterator[str]:
        """Losses with a declared bonus and no entropy."""
        if self.fits is not None and (reason := self.fits.left_out()):
            yield reason
