"""LOP010: a valid input makes a function raise."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import LoopSeen, Place, ScriptError, Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """A default call that raises is an error; an input only common sense allows, a note."""
    for loop in seen.loops:
        error = loop.facts["error"]
        if error and not loop.facts["error_explained"]:
            yield _sighting(loop, error, "called with its defaults", "it returns", Severity.ERROR)
        elif (error := loop.facts["prompts_error"]) and error.own:
            yield _sighting(loop, error, "prompts=(5,)", "any prompt ids work", Severity.NOTE)
    for place, facts in seen.other:
        if got := facts.get("documented"):
            yield Sighting(
                place,
                "one advantage a row, as the docstring says, lines up with the tokens: it fails "
                "unless there are as many rows as tokens, and is wrong then",
                Evidence("2 rows of 3 tokens, advantages [1, -1]", got, "a number"),
                Severity.ERROR,
            )
        if facts.get("raises"):
            trial, got = facts["raises"]
            yield Sighting(
                place,
                f"{trial} is not handled",
                Evidence(trial, got, "a number, or an error that says what is wrong"),
                Severity.NOTE,
            )


def _sighting(
    loop: LoopSeen, error: ScriptError, call: str, expected: str, severity: Severity
) -> Sighting:
    line = error.line or loop.where["function"].line
    place = Place(error.function or loop.function, line, line)
    return Sighting(
        place,
        f"{loop.function} raises {error.kind} when {call}",
        Evidence(f"{loop.function}: {call}", str(error), expected),
        severity,
    )


FAULT = Fault(
    code="LOP010",
    name="crash-on-valid-input",
    severity=Severity.ERROR,
    summary="raises on an input its docstring, types or a default call allow",
    remedy="handle this input, or raise an error that says what is expected",
    views="CR",
    detect=detect,
)
