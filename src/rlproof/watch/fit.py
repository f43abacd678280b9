"""One explanation of the recorded losses, and what is at fault in it."""

from __future__ import annotations

from dataclasses import dataclass

from rlproof.watch import candidates as space
from rlproof.watch.bonus import Bonus


@dataclass(frozen=True, slots=True)
class Fit:
    """One candidate that gives the recorded numbers."""

    term: space.Term
    weighting: space.Weighting
    divergence: str
    factor: float
    """a, −1 in a loss that is minimised; NaN where the surrogates are 0 at every step."""
    weight: float
    """b, β in a loss that is minimised."""
    residual: float
    """Root mean square of what is left, relative to the size of the terms."""
    certain: float
    """How far b may be off before it shows: a smaller difference means nothing."""
    faults: tuple[str, ...]
    """What is at fault in it; two codes with a slash give the same values."""
    bonus: Bonus | None = None
    """How the entropy enters, if it does."""
    entropy: float = 0.0
    """c, negative where the entropy is raised by a loss that is minimised."""
    certain_entropy: float = 0.0
    """How far c may be off before it shows."""

    @property
    def cost(self) -> tuple[int, bool, bool]:
        """Faults, then whether a bonus and a factor are needed: the least is the simplest."""
        return len(self.faults), self.bonus is not None, abs(abs(self.factor) - 1) > 1e-3

    def scaled(self, number: float) -> float:
        """A weight in units of the surrogate's."""
        return number if self.factor != self.factor else number / abs(self.factor)


def faults_of(
    term: space.Term, how: space.Weighting, divergence: str, factor: float, weight: float
) -> tuple[str, ...]:
    """The codes of every faulty coordinate."""
    known = space.codes()
    found: list[str] = []
    if how.counted:
        found.append("MSK001")
    for axis, value in (
        ("ratio", term.ratio),
        ("surrogate", term.surrogate),
        ("divergence", divergence),
        ("aggregation", how.aggregation),
    ):
        if (axis, value) in known and value != "k1":  # k1 in a loss is some frameworks' option
            found.append("/".join(known[axis, value]))
    if factor > 0:
        found.append("SUR005")
    if divergence != "none" and weight < 0:
        found.append("KLD001")
    return tuple(sorted(found))
