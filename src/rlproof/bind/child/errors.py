"""What the script raised, as a description that is safe to send and to print."""

from __future__ import annotations

import traceback
from typing import Any

Spec = dict[str, Any]
_LONGEST = 200


def one_line(value: object) -> str:
    """The first line of a text, printable, whatever `str` of the value does."""
    try:
        text = str(value)
    except BaseException as error:
        text = f"(its text can't be had: {type(error).__name__})"
    first = text.strip().split("\n")[0][:_LONGEST]
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in first)


def describe_error(error: BaseException, path: str) -> Spec:
    """What was raised, and the innermost line of the script that raised it."""
    every = traceback.extract_tb(error.__traceback__)
    frames = [f for f in every if f.filename == path]
    message = one_line(error)
    if isinstance(error, SystemExit):
        message = f"called sys.exit({one_line(_repr(error.code))})"
    found: Spec = {"type": one_line(type(error).__name__), "message": message}
    if frames:
        own = every[-1].filename == path and not isinstance(error, OSError | ImportError)
        found |= {"line": frames[-1].lineno, "function": frames[-1].name, "own": own}
    return found


def _repr(value: object) -> str:
    try:
        return repr(value)
    except BaseException:
        return "…"
