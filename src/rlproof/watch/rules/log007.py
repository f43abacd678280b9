"""LOG007: the loss is not the sum of the parts that are logged beside it."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.row import Row
from rlproof.watch.rules.model import Alarm, Broken, Rule, evidence


class Parts:
    """loss = policy loss + β·divergence − c·entropy.

    For loops of one's own: frameworks scale the parts by accumulation in ways of their own.
    """

    def __init__(self, facts: Facts) -> None:
        self.beta, self.bonus = facts.beta, facts.entropy_coefficient
        self.broken = Broken()
        self.subtracted = 0
        self.told = 0
        self.slopes: list[float] = []  # smallest and largest c that would explain the rest

    def see(self, row: Row) -> None:
        """One row."""
        loss, policy = row.get("loss"), row.get("policy-loss")
        reading = row.readings.get("policy-loss")
        beta = self.beta if self.beta is not None else row.get("kl-coefficient")
        if loss is None or policy is None or beta is None or (reading and reading.framework):
            return
        kl, entropy = row.get("kl-to-reference"), row.get("entropy")
        if (beta and kl is None) or (self.bonus and entropy is None):
            return
        pull = beta * (kl or 0.0)
        expected = policy + pull - (self.bonus or 0.0) * (entropy or 0.0)
        size = 1e-4 * max(abs(loss), abs(policy), abs(pull)) + 1e-6
        off = abs(loss - expected)
        if off > size:
            self.subtracted += abs(loss - expected + 2 * pull) <= size
        self._explain(expected - loss, entropy)
        self.broken.check(
            row.step,
            off - size,
            lambda: evidence(row.step, f"loss; {row.key('policy-loss')} + {beta:g}·divergence",
                             loss, expected),
        )  # fmt: skip

    def _explain(self, rest: float, entropy: float | None) -> None:
        """A rest that is the same multiple of the entropy at every step is a bonus."""
        self.told += 1
        if entropy and self.bonus is None:
            slope = rest / entropy
            low, high = self.slopes or (slope, slope)
            self.slopes = [min(low, slope), max(high, slope)]

    def alarms(self) -> Iterator[Alarm]:
        """Nothing where an entropy bonus of constant weight explains it all."""
        if not self.broken.seen or self._is_bonus():
            return
        if self.subtracted == self.broken.seen:
            yield self.broken.alarm(
                "the divergence is subtracted from the loss: descent then rewards leaving the "
                "reference", Severity.ERROR, ("KLD001",),
            )  # fmt: skip
        else:
            yield self.broken.alarm(
                "the loss is not the loss of the policy plus β times the divergence: a part is "
                "missing, counted twice, or averaged over other tokens"
            )

    def _is_bonus(self) -> bool:
        if not self.slopes or self.told < 3:
            return False
        low, high = self.slopes
        return low > 0 and high - low <= 1e-3 * high


RULE = Rule(
    code="LOG007",
    name="loss-is-not-its-parts",
    severity=Severity.WARNING,
    about="log",
    summary="loss ≠ policy loss + β·divergence − entropy bonus",
    remedy="log the parts as they enter the loss, over the same tokens and with the same divisor",
    start=Parts,
    needs=("loss", "policy-loss"),
    faults=("KLD001", "KLD007", "MET003"),
)
