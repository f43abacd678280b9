"""The defence of the tiny trainer: its lines, and the claims they rest on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlproof.defence.claims import Computed, chosen, compute
from rlproof.defence.grounds import GroundedLine, grounded


@dataclass(frozen=True, slots=True)
class TrainerDefence:
    """What `rlproof defend` without a script says."""

    lines: tuple[GroundedLine, ...]
    computed: tuple[Computed, ...]

    @property
    def holds(self) -> bool:
        """Whether every number of every claim came out."""
        return all(one.holds for one in self.computed)

    @property
    def numbers(self) -> int:
        """How many numbers were computed."""
        return sum(len(one.numbers) for one in self.computed)


def defend_trainer(only: Sequence[str] = (), processes: int | None = None) -> TrainerDefence:
    """Compute the claims, and find the lines that rest on them.

    Args:
        only: ids, names or chapter letters; none means all claims and all lines.
        processes: see `rlproof.defence.claims.compute`.

    Raises:
        ConfigError: nothing is called so.
        UngroundedError: a line of the tiny trainer is not the one that was defended.
    """
    ids = chosen(only)
    lines = [one for one in grounded() if not only or set(one.ground.claims) & set(ids)]
    return TrainerDefence(tuple(lines), tuple(compute(ids, processes)))
