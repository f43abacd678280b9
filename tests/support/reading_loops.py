"""A loop read from text."""

from __future__ import annotations

import ast
from textwrap import dedent

from rlproof.read.loop.events import events
from rlproof.read.loop.passes import Passes, attributes
from rlproof.read.loop.reading import LoopRead
from rlproof.read.loop.trace import Definitions, traces


def loops_of(text: str, word: str = "backward") -> list[LoopRead]:
    """Every trace of a script."""
    tree = ast.parse(dedent(text))
    names = attributes(Definitions(tree))
    return [LoopRead(t, Passes(t, names), events(t)) for t in traces(tree, word)]


def loop_of(text: str) -> LoopRead:
    """The one trace with a backward pass."""
    [loop] = [one for one in loops_of(text) if any(e.kind == "backward pass" for e in one.events)]
    return loop
