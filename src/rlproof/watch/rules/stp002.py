"""STP002: the recorded losses are not those of the declared objective."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Severity, rounded
from rlproof.space.published import OBJECTIVES
from rlproof.watch.computed import beta, coefficient, is_of, of_unknown_scale, words
from rlproof.watch.facts import Facts
from rlproof.watch.fit import Fit
from rlproof.watch.lossfits import OfLosses
from rlproof.watch.rules.model import Alarm, Rule


class Declared(OfLosses):
    """The declared objective and β against what was found."""

    def alarms(self) -> Iterator[Alarm]:
        """Only where the losses are those of something else that is published."""
        if self.fits is None or self.fits.as_declared() or self._undecided():
            return
        known, healthy = self.fits.facts, self._healthy()
        if not healthy:
            yield from self._of_points(known)
        if not healthy or (known.objective is None and not _weights(known)):
            return
        name = known.objective
        meant = OBJECTIVES[name].objective if name else None
        own = [fit for fit in healthy if meant is None or is_of(fit, meant)]
        if not own:
            steps = self.fits.coordinates.steps
            found = Evidence(f"{steps} recorded losses", words(healthy[0]), str(name))
            message = f"the recorded losses are {words(healthy[0])}, which is not {name}"
            yield self._alarm(message, found)
            return
        doubtful = [fit for fit in self.fits.coordinates.in_doubt(own[0]) if known.beta is not None]
        if not any(self._agrees(fit, known) for fit in (*own, *doubtful)):
            yield self._weight(own[0], known)

    def _undecided(self) -> bool:
        """Whether a bonus is declared that this many batches can't be held to."""
        assert self.fits is not None
        fit = self.fits.coordinates
        return bool(self.fits.facts.entropy_coefficient and fit.with_entropy) and (
            not fit.decides_bonus
        )

    def _agrees(self, fit: Fit, known: Facts) -> bool:
        """Whether β and the weight of the entropy are the declared ones."""
        assert self.fits is not None
        weight = beta(fit) if fit.divergence != "none" else 0.0
        if known.beta is not None and _apart(weight, known.beta, fit.certain):
            return False
        if known.entropy_coefficient is None or of_unknown_scale(fit):
            return True
        slack = fit.scaled(fit.certain_entropy)
        slack = slack if fit.bonus else self.fits.coordinates.certain_bonus
        return not _apart(coefficient(fit), known.entropy_coefficient, slack)

    def _weight(self, fit: Fit, known: Facts) -> Alarm:
        """Which weight differs."""
        weight = beta(fit) if fit.divergence != "none" else 0.0
        if known.beta is not None and _apart(weight, known.beta, fit.certain):
            numbers = Evidence("β in the recorded losses", rounded(weight, 4), known.beta)
            return self._alarm("the weight of the divergence is not the declared β", numbers)
        return self._alarm(_ENTROPY, _of_entropy(coefficient(fit), known))

    def _of_points(self, known: Facts) -> Iterator[Alarm]:
        """A published objective with corrections, whose bonus has another weight."""
        assert self.fits is not None
        meant = [one for one in self.fits.named() if known.objective in (None, one.name)]
        if meant:
            yield self._alarm(_ENTROPY, _of_entropy(meant[0].coefficient, known))

    def _healthy(self) -> list[Fit]:
        fits = self.fits.coordinates.fits() if self.fits else []
        return [fit for fit in fits if not fit.faults]

    def _alarm(self, message: str, found: Evidence) -> Alarm:
        steps = self.fits.coordinates.steps if self.fits else 0
        return Alarm(message, found, self.first, steps, steps)


_ENTROPY = "the weight of the entropy in the loss is not the declared one"


def _of_entropy(got: float, known: Facts) -> Evidence:
    expected = known.entropy_coefficient or 0.0
    return Evidence("weight of the entropy bonus in the recorded losses", rounded(got, 4), expected)


def _weights(known: Facts) -> bool:
    return known.beta is not None or known.entropy_coefficient is not None


def _apart(weight: float, expected: float, certain: float) -> bool:
    """Whether a weight is another one, beyond what rounding hides."""
    return abs(weight - expected) > max(1e-2 * abs(expected), certain, 1e-6)


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
