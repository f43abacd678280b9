"""Every error a user can cause: what was met, what was expected, what to do.

All derive from `RlproofError`, a `ValueError`. To add one, subclass it, set `exit_code`, and
say in the message the offending value, what was expected, and the next step, in one line.
"""

from __future__ import annotations

from typing import Any

_LONGEST = 200


def quoted(value: Any) -> str:
    """A value as a message shows it: on one line, and no longer than some words."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # Python writes no number of more than 4300 digits
        return f"a {type(value).__name__} that is too large to show"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


class RlproofError(ValueError):
    """The base of all errors that the command line shows as one line."""

    exit_code = 2


class SourceError(RlproofError):
    """A file can't be read as Python source."""


class ConfigError(RlproofError):
    """An option, a setting in pyproject.toml or a `# rlproof:` comment is wrong."""


class SandboxError(RlproofError):
    """The child process that runs the script's functions could not be used at all."""


class RolloutError(RlproofError):
    """Completions can't be sampled: a prompt, the model, its server or an environment."""


class NothingToCheckError(RlproofError):
    """Nothing recognisable was found: never reported as clean."""

    exit_code = 5


class DataError(RlproofError):
    """The prompts of a training run can't be used: none, malformed, or too long."""


class RewardError(RlproofError):
    """A reward function raised, took too long, or returned something that is no reward."""


class CheckpointError(RlproofError):
    """A checkpoint could not be written or read; an older one is left as it is."""


class FirstStepError(RlproofError):
    """The first training step was judged, and something is wrong with it."""

    exit_code = 1


class TrainError(RlproofError):
    """Training can't go on: a gradient that is not finite, or a run that is not as it was."""
