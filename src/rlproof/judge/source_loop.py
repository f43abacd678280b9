"""Faults of training loops that the source alone proves: two places that contradict each other.

For loops that need a model, a tokenizer, a GPU or a trainer, so that nobody can run them here. A
finding is given only where every path of the syntax tree agrees; where a setting decides, the
check is listed as skipped, with what it depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rlproof.faults.model import Sighting
from rlproof.judge.findings import Skipped
from rlproof.judge.source_adapters import adapters
from rlproof.judge.source_bonus import bonuses
from rlproof.judge.source_calls import arguments
from rlproof.judge.source_data import (
    class_temperature,
    masks,
    method_orders,
    orders,
    scoring_temperature,
    trainer_sampling,
    truncation,
)
from rlproof.judge.source_dims import dimensions
from rlproof.judge.source_frozen import frozen
from rlproof.judge.source_policies import old_log_probs, references, stale_copies
from rlproof.judge.source_precision import precisions
from rlproof.judge.source_ranks import ranks
from rlproof.judge.source_rows import selections
from rlproof.judge.source_said import Said, Told
from rlproof.judge.source_updates import accumulation, clearing, directions
from rlproof.read.loop.reading import FileRead, LoopRead, read_loops
from rlproof.read.targets import Script

_OF_A_LOOP: tuple[Callable[[Script, FileRead, LoopRead], Iterator[Said]], ...] = (
    old_log_probs,
    stale_copies,
    references,
    adapters,
    precisions,
    clearing,
    directions,
    frozen,
    accumulation,
    ranks,
    truncation,
    scoring_temperature,
    masks,
    orders,
)
_OF_A_FILE: tuple[Callable[[Script, FileRead], Iterator[Said]], ...] = (
    arguments,
    selections,
    dimensions,
)


@dataclass(frozen=True, slots=True)
class SourceLoops:
    """What the loops of a file prove without being run."""

    sightings: tuple[tuple[str, Sighting], ...] = ()
    skipped: tuple[Skipped, ...] = ()
    loops: frozenset[str] = frozenset()
    """The functions whose loop was read."""


def judge(script: Script, recorded: frozenset[str] = frozenset()) -> SourceLoops:
    """Judge the loops that were not run.

    Args:
        script: what `rlproof.read` found.
        recorded: functions whose loop was run; nothing is added to what that showed.
    """
    read = read_loops(script)
    loops = [one for one in read.loops if not one.functions & recorded]
    said: list[Said] = [_too_long(loop) for loop in loops if not loop.trace.complete]
    loops = [loop for loop in loops if loop.trace.complete]
    said += [s for loop in loops for ask in _OF_A_LOOP for s in ask(script, read, loop)]
    said += bonuses(script)
    if not read.loops:
        said += [*trainer_sampling(script, read), *class_temperature(script, read)]
        said += method_orders(script, read)
    said += [s for ask in _OF_A_FILE for s in ask(script, read)]
    told = {(s.code, s.sighting.place): s for s in said if isinstance(s, Told)}
    skipped = {(s.check, s.reason): s for s in said if isinstance(s, Skipped)}
    return SourceLoops(
        tuple((s.code, s.sighting) for s in told.values()),
        tuple(skipped.values()),
        frozenset(loop.name for loop in loops if loop.updates),
    )


def _too_long(loop: LoopRead) -> Skipped:
    reason = "with its calls written out it is too long to be read"
    return Skipped(f"the loop of {loop.name} from source", reason)


def is_readable(script: Script) -> bool:
    """Whether there is a loop with an update in sight, or trainer settings that are at odds."""
    read = judge(script)
    return bool(read.loops or read.sightings)
