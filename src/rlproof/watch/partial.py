"""Rollout dumps in partitions: each looked at by itself, the results put together in order.

A partition's result holds of each step what the rules ask for, so that they judge the same
numbers in the same order as in one pass. The report is then the same where

- all rows of a step lie in one partition, in the order of the dump;
- the dump is in the order of its steps (they are put into that order here);
- all rows are completions: rows of metrics between them are counted and left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from rlproof.errors import ConfigError
from rlproof.watch.dump import MOST, DumpStep, dump_step
from rlproof.watch.facts import Facts
from rlproof.watch.inspect import Inspection, Inspector
from rlproof.watch.readers.items import Listed, Sample
from rlproof.watch.readers.samples import is_sample, sample
from rlproof.watch.signal import MANY


@dataclass(frozen=True, slots=True)
class Partial:
    """What one partition shows: some numbers a prompt, whatever the length of the texts."""

    steps: tuple[DumpStep, ...] = field(repr=False)
    """In order."""
    others: int = 0
    """Rows that are no completion with a reward or an advantage."""


def inspect_partition(rows: Iterable[Mapping[str, Any]]) -> Partial:
    """What the rows of one partition show, each a dictionary as verl or TRL dumps it.

    Args:
        rows: all rows of some steps, in the order of the dump. Of each row numbers are kept, and
            never its text.
    """
    others = 0

    def samples() -> Iterator[Sample]:
        nonlocal others
        for where, row in enumerate(rows, 1):
            if is_sample(row):
                yield sample(row, where)
            else:
                others += 1

    steps = gather(samples())
    return Partial(steps, others)


def gather(samples: Iterable[Sample]) -> tuple[DumpStep, ...]:
    """The steps of a partition in order, with the rows that a fit over the whole may ask for.

    Those are the rows of its first `MANY` steps with a signal, which hold the first ones of the
    whole, and of the steps that are sampled by their number.
    """
    by_step: dict[float, list[Sample]] = {}
    for one in samples:
        by_step.setdefault(one.step or 0.0, []).append(one)
    found, telling = [], 0
    for number in sorted(by_step):
        held = by_step.pop(number)
        for part, start in enumerate(range(0, len(held), MOST)):
            step = dump_step(held[start : start + MOST], part)
            if step.signal is not None:
                telling += step.signal.telling
                if telling > MANY and not step.signal.sampled:
                    step = replace(step, signal=step.signal.light())
            found.append(step)
    return tuple(found)


def combine(
    partials: Iterable[Partial], facts: Facts | None = None, path: str = "dump"
) -> Inspection:
    """The report of the whole dump.

    Args:
        partials: of all partitions, in any order.
        facts: what the run declares.
        path: a name for the report.

    Raises:
        ConfigError: a step lies in two partitions; its groups and means can't be had then.
    """
    parts = list(partials)
    steps = sorted((s for one in parts for s in one.steps), key=lambda s: (s.step, s.part))
    for before, after in pairwise(steps):
        if (before.step, before.part) == (after.step, after.part):
            raise ConfigError(
                f"step {after.step:g} lies in two partitions, expected all its rows in one; "
                "partition the dump by its step"
            )
    kind = f"rollouts in {len(parts)} partition{'s' * (len(parts) != 1)}"
    inspector = Inspector(path, Listed(kind, None, iter(())), facts or Facts())
    for step in steps:
        inspector.gathered(step)
    shown = inspector.result()
    others = sum(one.others for one in parts)
    more = ((f"{others} rows", "no completions with a reward or an advantage"),) if others else ()
    return replace(shown, skipped=(*shown.skipped, *more))
