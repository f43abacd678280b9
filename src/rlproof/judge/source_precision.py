"""Old and new log-probs that are scored in two precisions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.judge.source_policies import pair_of
from rlproof.judge.source_said import Said, tell
from rlproof.read.loop.passes import Forward
from rlproof.read.loop.reading import FileRead, LoopRead
from rlproof.read.loop.repeats import statement_in
from rlproof.read.names import words
from rlproof.read.targets import Script

_AUTOCAST = {"autocast", "amp"}
_HARMLESS = {"no_grad", "inference_mode", "nullcontext"}
_ELSEWHERE = ("accelerat", "deepspeed", "fabric", "lightning", "set_autocast", "__enter__",
              "MixedPrecision", "enabled=False")  # fmt: skip


def precisions(script: Script, read: FileRead, loop: LoopRead) -> Iterator[Said]:
    """LOP008: one side of the ratio is scored under autocast, the other one is not.

    A framework that casts by itself casts both; then nothing is said.
    """
    del read
    if "autocast" not in script.source.text or any(w in script.source.text for w in _ELSEWHERE):
        return
    for ratio in loop.passes.ratios:
        pair = pair_of(loop, ratio.difference)
        if pair is None or pair[0].model != pair[1].model or pair[0].adapter or pair[1].adapter:
            continue
        new, old = pair
        cast = {forward.number: _casts(forward) for forward in pair}
        if None in cast.values() or cast[new.number] == cast[old.number]:
            continue
        plain, half = (old, new) if cast[new.number] else (new, old)
        which = "old" if plain is old else "new"
        yield tell(
            "LOP008",
            statement_in(plain.step, half.step),
            f"the {which} log-probs are scored without autocast and the others with it: the "
            "ratio carries the rounding of half precision before any update",
            "log ρ ≠ 0 at the first update",
            "both under the same autocast",
            statement_in(half.step, plain.step).node,
        )


def _casts(forward: Forward) -> bool | None:
    """Whether a forward pass is under autocast; None where a `with` block may do anything."""
    found = False
    for context in forward.step.contexts:
        names = {n.attr if isinstance(n, ast.Attribute) else n.id for n in ast.walk(context)
                 if isinstance(n, ast.Attribute | ast.Name)}  # fmt: skip
        if any(set(words(name)) & _AUTOCAST for name in names):
            found = True
        elif not names & _HARMLESS:
            return None
    return found
