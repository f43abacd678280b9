"""STP002: the recorded losses are not those of the declared objective."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Severity, rounded
from rlproof.space.published import OBJECTIVES
from rlproof.watch.computed import beta, is_of, words
from rlproof.watch.facts import Facts
from rlproof.watch.lossfit import Fit
from rlproof.watch.lossfits import LossFits, of_run
from rlproof.watch.rules.model import Alarm, Rule
from rlproof.watch.seen import StepSeen


class Declared:
    """The declared objective and β against what was found."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.fits: LossFits | None = None
        self.first: float | None = None

    def see(self, step: StepSeen) -> None:
        """One recorded step, where something is declared."""
        self.first = step.step if self.first is None else self.first
        self.fits = of_run(step, self.facts)

    def alarms(self) -> Iterator[Alarm]:
        """Only where the losses are those of something else that is published."""
        if self.fits is None or self.fits.points.names():
            return
        known, healthy = self.fits.facts, self._healthy()
        if not healthy or (known.objective is None and known.beta is None):
            return
        name = known.objective
        meant = OBJECTIVES[name].objective if name else None
        own = [fit for fit in healthy if meant is None or is_of(fit, meant)]
        if not own:
            steps = self.fits.coordinates.steps
            found = Evidence(f"{steps} recorded losses", words(healthy[0]), str(name))
            message = f"the recorded losses are {words(healthy[0])}, which is not {name}"
            yield self._alarm(message, found)
        elif known.beta is not None:
            expected = known.beta
            weights = [beta(fit) if fit.divergence != "none" else 0.0 for fit in own]
            if all(_apart(fit, w, expected) for fit, w in zip(own, weights, strict=True)):
                numbers = Evidence("β in the recorded losses", rounded(weights[0], 4), expected)
                yield self._alarm("the weight of the divergence is not the declared β", numbers)

    def _healthy(self) -> list[Fit]:
        fits = self.fits.coordinates.fits() if self.fits else []
        return [fit for fit in fits if not fit.faults]

    def _alarm(self, message: str, found: Evidence) -> Alarm:
        steps = self.fits.coordinates.steps if self.fits else 0
        return Alarm(message, found, self.first, steps, steps)


def _apart(fit: Fit, weight: float, expected: float) -> bool:
    """Whether the weight of the divergence is another one, beyond what rounding hides."""
    return abs(weight - expected) > max(1e-2 * expected, fit.certain, 1e-6)


RULE = Rule(
    code="STP002",
    name="not-the-declared-objective",
    severity=Severity.WARNING,
    about="step",
    summary="a published objective gives the recorded losses, and it is not the declared one",
    remedy="declare what is meant, or set the coordinate that differs",
    start=Declared,
    needs=("loss", "new_logps", "advantages"),
    faults=("AGG006", "KLD007", "SUR008"),
)
