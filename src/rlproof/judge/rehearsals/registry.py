"""Which identity a fault violates, and the check of it in a process of its own."""

from __future__ import annotations

from collections.abc import Callable

from rlproof.bind.children import Child
from rlproof.bind.implementation import UnbindableError
from rlproof.bind.outlined import functions
from rlproof.bind.sandbox import ChildDiedError, Sandbox
from rlproof.errors import RlproofError
from rlproof.judge.rehearsals import (
    arguments,
    baseline,
    ends,
    ratio,
    rows,
    scored,
    split,
    trained,
)
from rlproof.judge.rehearsals.model import Identity, Rehearsed
from rlproof.probe.rehearsal import Rehearsal
from rlproof.read.targets import Script

IDENTITIES: dict[str, Identity] = {
    "ADV002": baseline.IDENTITY,
    "ADV003": baseline.IDENTITY,
    "AGG001": split.IDENTITY,
    "DAT001": rows.IDENTITY,
    "DAT002": arguments.IDENTITY,
    "LGP001": scored.IDENTITY,
    "LOP001": ratio.IDENTITY,
    "LOP006": trained.IDENTITY,
    "MSK004": ends.IDENTITY,
    "MSK011": arguments.IDENTITY,
    "SMP001": scored.IDENTITY,
}


def rehearsed(
    script: Script,
    code: str,
    function: str,
    seconds: float,
    begin: Callable[[], Child] | None = None,
) -> Rehearsed:
    """Execute a function with stand-ins, and check the identity that a fault violates.

    Args:
        script: the script.
        code: the fault.
        function: where it was read.
        seconds: limit for each run.
        begin: starts a child process; a warm one may.
    """
    identity = IDENTITIES.get(code)
    if identity is None:
        return Rehearsed(None, "no identity is known that it would violate")
    try:
        with Sandbox(script.source, seconds, functions(script), begin) as sandbox:
            sandbox.load()
            return identity.judge(
                Rehearsal(script, sandbox, function, alone=identity.alone, watch=identity.watch)
            )
    except (UnbindableError, ChildDiedError, RlproofError) as error:
        return Rehearsed(None, str(error))
