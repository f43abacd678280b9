"""Whether a script works on negative log-probabilities throughout."""

from __future__ import annotations

from rlproof.bind.implementation import UnbindableError
from rlproof.bind.logprobs import LogProbsImplementation, plain
from rlproof.bind.sandbox import Sandbox
from rlproof.faults.seen import ScriptError
from rlproof.read.targets import Role, Script, Target


def has_negative_log_probs(script: Script, sandbox: Sandbox) -> bool:
    """Whether the script's own token log-prob functions return positive numbers only.

    Decided from values: a function that can't be called with a small table says nothing.
    """
    signs = [_is_negative(script, target, sandbox) for target in script.of(Role.LOG_PROBS)]
    return True in signs and False not in signs


def _is_negative(script: Script, target: Target, sandbox: Sandbox) -> bool | None:
    try:
        function = LogProbsImplementation(script, target, sandbox)
        rows = function.run(plain(function.words))
    except (UnbindableError, ScriptError):
        return None
    return min(x for row in rows for x in row) > 0
