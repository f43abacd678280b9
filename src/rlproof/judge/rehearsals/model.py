"""What a rehearsal came to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rlproof.faults.model import Evidence
from rlproof.probe.rehearsal import Rehearsal


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """Whether an identity holds; None where the runs say nothing about it, for this reason."""

    holds: bool | None
    reason: str = ""
    evidence: Evidence | None = None


@dataclass(frozen=True, slots=True)
class Identity:
    """One identity: what it says, and how it is asked."""

    says: str
    judge: Callable[[Rehearsal], Rehearsed]
    alone: bool = False
    """Whether a method that scores is called after one that samples, where nothing calls both."""
    watch: bool = False
    """Whether the calls of losses are recorded."""


SILENT = "nothing is differentiated there by the log-probs of tokens"
STAND_INS = "executed with stand-ins"
