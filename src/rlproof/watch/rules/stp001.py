"""STP001: the recorded losses are those of a faulty objective."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Severity, rounded
from rlproof.watch.bonus import OF_GRADIENT, SPARE
from rlproof.watch.computed import points, recipes, words
from rlproof.watch.fit import Fit
from rlproof.watch.lossfit import ENOUGH, LossFit
from rlproof.watch.lossfits import OfLosses
from rlproof.watch.rules.model import Alarm, Rule


class Loss(OfLosses):
    """All candidates over all recorded steps."""

    def alarms(self) -> Iterator[Alarm]:
        """Where every explanation has a fault: the faults of the simplest one."""
        if self.fits is None or self.fits.named():
            return
        fits, steps = self.fits.coordinates.fits(), self.fits.coordinates.steps
        if not fits or not fits[0].faults or self._doubtful(fits[0]):
            return
        simplest = [fit for fit in fits if fit.cost == fits[0].cost]
        shared = [code for code in fits[0].faults if all(code in f.faults for f in simplest)]
        codes = tuple(code for group in shared for code in group.split("/"))
        yield Alarm(
            f"the recorded losses are {words(fits[0])}: {', '.join(shared) or 'a faulty objective'}"
            + (f", or {len(simplest) - 1} others as simple" if len(simplest) > 1 else ""),
            self._evidence(self.fits.coordinates, fits[0].residual),
            self.first,
            steps,
            steps,
            faults=codes,
        )

    def _doubtful(self, fit: Fit) -> bool:
        """Whether only the divergence is blamed, and a bonus that nobody recorded explains it."""
        of_divergence = all(code.startswith("KLD") for code in fit.faults)
        return of_divergence and self.fits is not None and bool(self.fits.coordinates.in_doubt(fit))

    def _evidence(self, fit: LossFit, residual: float) -> Evidence | None:
        closest = fit.closest()
        if closest is None:
            return None
        return Evidence(
            f"{fit.steps} recorded steps, {fit.moved} with a ratio other than 1: what "
            f"the closest published objective ({words(closest)}) leaves unexplained, relative to "
            "the size of the advantages; what this one leaves",
            rounded(closest.residual, 3),
            rounded(residual, 3),
        )

    def said(self) -> Iterator[str]:
        """What the losses are, where nothing is wrong."""
        if self.fits is None or not self.fits.coordinates.steps:
            return
        fit, named = self.fits.coordinates, self.fits.named()
        fits = fit.fits()
        healthy = [fit for fit in fits if not fit.faults]
        within = "within the rounding of half precision " if fit.rounding > 1e-3 else ""
        what = "gradients" if fit.left_out and not fit.with_entropy else "losses"
        if named:
            yield f"{within}the recorded losses are those of {points(named)}"
        elif healthy:
            known = recipes(healthy)
            like = f", as {', '.join(known)} with these coefficients" if known else ""
            more = f"; {len(healthy) - 1} others give the same" if len(healthy) > 1 else ""
            yield f"{within}the recorded {what} are {words(healthy[0])}{like}{more}"
        elif not fit.decides:
            yield (
                f"{fit.steps} recorded losses of {fit.batches} batches do not decide what they "
                f"are: record {ENOUGH} batches, some after an update, or the gradient"
            )
        elif not fits:
            yield "no objective known here gives the recorded losses, which is no fault" + (
                self._perhaps(fit)
            )
        elif self._doubtful(fits[0]):
            yield (
                f"the recorded losses are {words(fits[0])}, or something healthy with a constant "
                "added, as an entropy bonus may be: record entropy="
            )

    def _perhaps(self, fit: LossFit) -> str:
        """What may be missing from the comparison, as far as that is known."""
        alone = [one for one in fit.of_gradients() if not one.faults]
        if alone:
            return (
                f": the gradients are those of {words(alone[0])}, and the losses hold a part that "
                "is not in them, as a bonus for the entropy of the logits is"
                + (
                    f" ({OF_GRADIENT} batches can tell)"
                    if fit.with_entropy
                    else ": record entropy="
                )
            )
        if not fit.with_entropy:
            return "; if they hold an entropy bonus, record entropy="
        if not fit.decides_bonus:
            return f"; if they hold an entropy bonus, {SPARE} batches are needed to tell"
        return ""


RULE = Rule(
    code="STP001",
    name="faulty-objective",
    severity=Severity.ERROR,
    about="step",
    summary="no published objective gives the recorded losses, and a faulty one does",
    remedy="repair the faults it names; `rlproof check` finds their lines",
    start=Loss,
    needs=("loss", "new_logps", "advantages"),
    faults=(),
)
