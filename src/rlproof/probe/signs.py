"""Whether a script works on negative log-probabilities throughout."""

from __future__ import annotations

from math import exp, log

from rlproof.bind.extraction import ExtractionImplementation
from rlproof.bind.extraction import plain as texts
from rlproof.bind.implementation import UnbindableError
from rlproof.bind.logprobs import LogProbsImplementation, plain
from rlproof.bind.sandbox import Sandbox
from rlproof.faults.seen import Scoring, ScriptError
from rlproof.read.names import Slot
from rlproof.read.targets import Role, Script, Target


def has_negative_log_probs(script: Script, sandbox: Sandbox) -> bool:
    """Whether the script's own token log-prob functions return positive numbers only.

    Decided from values: a function that can't be called with a small table says nothing.
    """
    signs = [_is_negative(script, target, sandbox) for target in script.of(Role.LOG_PROBS)]
    return True in signs and False not in signs


def _is_negative(script: Script, target: Target, sandbox: Sandbox) -> bool | None:
    try:
        if target.has(Slot.MODEL):
            return _reads_negative(ExtractionImplementation(script, target, sandbox))
        function = LogProbsImplementation(script, target, sandbox)
        scoring = plain(function.words)
        numbers = [x for row in function.run(scoring) for x in row]
    except (UnbindableError, ScriptError):
        return None
    return min(numbers) > 0 and not _are_probabilities(numbers, scoring)


def _are_probabilities(numbers: list[float], scoring: Scoring) -> bool:
    """Whether each number is nearer to its token's probability than to minus its logarithm."""
    lines = [line for slots in scoring.logits for line in slots]
    tokens = [token for row in scoring.tokens for token in row]
    if len(numbers) != len(tokens):
        return False
    for x, line, token in zip(numbers, lines, tokens, strict=True):
        p = exp(line[token]) / sum(map(exp, line))
        if abs(x - p) >= abs(x + log(p)):
            return False
    return True


def _reads_negative(function: ExtractionImplementation) -> bool | None:
    """From the first part of the answer that has no fillers."""
    for rows in function.answers([texts()])[0]:
        numbers = [x for row in rows for x in row if x != 0]
        # a probability is no more than 1; of these tokens some have one below 1/e
        return min(numbers) > 0 and max(numbers) > 1 if numbers else None
    return None
