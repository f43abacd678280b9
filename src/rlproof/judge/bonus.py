"""Whether the gradient of an entropy bonus is that of its value."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from rlproof.bind.bonus import BonusImplementation, targets
from rlproof.bind.implementation import UnbindableError
from rlproof.bind.sandbox import Sandbox
from rlproof.faults.seen import Place, ScriptError
from rlproof.judge.source_bonus import bonuses
from rlproof.judge.source_said import Told
from rlproof.read.landmarks import definition
from rlproof.read.targets import Script, module_functions

Fact = tuple[Place, dict[str, Any]]


def judge(script: Script, sandbox: Sandbox) -> Iterator[Fact]:
    """For every function with a bonus that can be run: ∂bonus/∂x by autograd and by differences.

    What can't be run is left to what the source says.
    """
    if "entropy" not in script.source.text.lower():
        return
    places = [s.sighting.place for s in bonuses(script) if isinstance(s, Told)]
    tuned = _is_tuned(script)
    for target in () if tuned else targets(script, module_functions(script.source.tree)):
        where = next((p for p in places if p.function == target.name), definition(target))
        try:
            if sandbox.reasons.get(target.entry):
                continue
            pair = BonusImplementation(script, target, sandbox).bonus()
        except (UnbindableError, ScriptError):
            continue
        yield where, {"bonus": pair}


def _is_tuned(script: Script) -> bool:
    """Whether the coefficient is trained: its own loss holds the entropy as a number."""
    names = {n.id for n in ast.walk(script.source.tree) if isinstance(n, ast.Name)}
    return bool(names & {"log_alpha", "target_entropy"})
