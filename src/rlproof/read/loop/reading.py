"""Everything that is read of the loops of one file, put together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from rlproof.read.loop.events import Event, Kind, events
from rlproof.read.loop.passes import Passes, attributes
from rlproof.read.loop.trace import Definitions, Trace, traces
from rlproof.read.loop.values import Values
from rlproof.read.source import Source
from rlproof.read.targets import Script

_BACKWARD = "backward"
_REINFORCES = re.compile(r"\badv|reward|grpo", re.IGNORECASE)
_DONE = {Kind.STEP, Kind.ENGINE}


@dataclass(frozen=True, slots=True)
class LoopRead:
    """One trace with a backward pass, its forward passes and its events."""

    trace: Trace
    passes: Passes
    events: Sequence[Event]

    @property
    def functions(self) -> set[str]:
        """The names of all functions in it; methods with and without their class."""
        frames = self.trace.frames
        return {frame.name for frame in frames} | {frame.title for frame in frames}

    @property
    def updates(self) -> bool:
        """Whether the update itself is in sight, not only the backward pass."""
        return any(e.kind in _DONE for e in self.events)

    @property
    def name(self) -> str:
        """The innermost function whose loop the backward pass is in; the root without a loop."""
        for event in self.events:
            if event.kind is Kind.BACKWARD and event.step.loops:
                frame, loop = event.step.frame, event.step.loops[-1]
                while frame.site is not None and frame.caller and frame.site.inside(loop):
                    frame = frame.caller
                return frame.title
        return self.trace.root.title


@dataclass(frozen=True, slots=True)
class FileRead:
    """The loops of a file that train, and the numbers that it fixes."""

    values: Values
    loops: list[LoopRead] = field(default_factory=list)


def read_loops(script: Script) -> FileRead:
    """The loops of a script that train by reinforcement; none in a file without rewards."""
    return _read(script.source)


@lru_cache(maxsize=4)
def _read(source: Source) -> FileRead:
    values = Values(source.tree)
    if _BACKWARD not in source.text or not _REINFORCES.search(source.text):
        return FileRead(values)
    known = Definitions(source.tree)
    names = attributes(known)
    loops = []
    for trace in traces(source.tree, _BACKWARD):
        found = events(trace)
        if any(e.kind is Kind.BACKWARD for e in found):
            loops.append(LoopRead(trace, Passes(trace, names), found))
    return FileRead(values, loops)
