"""LOG004: tokens are clipped in the only update of a batch, where the ratio is 1."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.row import Row
from rlproof.watch.rules.model import Alarm, Broken, Rule, evidence

_OTHER_POLICY = ("prime-rl", "AReaL")
"""Their ratio is not to the policy at the start of the update."""


class Clipped:
    """The clip fraction where one update a batch is declared."""

    def __init__(self, facts: Facts) -> None:
        self.once = facts.updates == 1
        self.broken = Broken()

    def see(self, row: Row) -> None:
        """One row."""
        share, reading = row.get("clip-fraction"), row.readings.get("clip-fraction")
        if not self.once or share is None or reading is None:
            return
        if reading.framework not in _OTHER_POLICY:
            self.broken.check(
                row.step, share - 1e-6, lambda: evidence(row.step, reading.key, share, 0.0)
            )

    def alarms(self) -> Iterator[Alarm]:
        """Where one update is declared."""
        if self.broken.seen:
            yield self.broken.alarm(
                "tokens are clipped although each batch is used once: before its first update the "
                "ratio is 1, so the old log-probs are not those of the policy that is trained"
            )


RULE = Rule(
    code="LOG004",
    name="clipped-before-the-update",
    severity=Severity.ERROR,
    about="log",
    summary="the clip fraction is not 0 although each batch is used for one update",
    remedy="score old and new log-probs in one way: precision, padding, temperature, no dropout",
    start=Clipped,
    needs=("clip-fraction",),
    faults=("LOP002", "LGP001", "LGP005", "MSK013"),
)
