"""QST003: the divergence from the reference keeps rising."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.watch.facts import Facts
from rlproof.watch.row import Row
from rlproof.watch.rules.curves import Ends, usable
from rlproof.watch.rules.model import Alarm, Rule

_ROWS = 5


class Rising:
    """The divergence at both ends of the run."""

    def __init__(self, facts: Facts) -> None:
        self.ends = Ends(_ROWS)
        self.count = 0

    def see(self, row: Row) -> None:
        """One row."""
        value = row.get("kl-to-reference")
        if usable(value):
            self.count += 1
            self.ends.add(row.step, value)

    def alarms(self) -> Iterator[Alarm]:
        """An answer, where somebody would ask."""
        if not self.ends.full:
            return
        before, after = self.ends.means()
        if after > 2 * before and after > 1e-3:
            yield Alarm(
                f"the divergence rose from {before:.3g} to {after:.3g} nats: normal, because the "
                "policy leaves a reference that stands still; a larger β must slow it down",
                None, self.ends.start, self.count, self.count,
            )  # fmt: skip


RULE = Rule(
    code="QST003",
    name="divergence-rises",
    severity=Severity.NOTE,
    about="log",
    summary="the divergence from the reference rises",
    remedy="if it must not, raise β and see that it rises less",
    start=Rising,
    normal=True,
)
