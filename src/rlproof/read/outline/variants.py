"""The branches that settings decide: which choices to outline, and how they are named."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

_PREFERRED = ("grpo", "token", "ppo", "vanilla", "token-mean", "gspo", "seq")


def base(switches: Mapping[str, Sequence[Any]], known: Collection[str]) -> dict[str, Any]:
    """The choice to start from, where the file names none: GRPO's own, if it is there."""
    return {
        key: next((p for p in _PREFERRED if p in values), values[0])
        for key, values in switches.items()
        if isinstance(values[0], str) and key not in known
    }


def alternatives(
    switches: Mapping[str, Sequence[Any]], start: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """One setting changed at a time: strings first, since they name objectives."""
    found: list[dict[str, Any]] = []
    for strings in (True, False):
        for key, known in switches.items():
            values = list(known)
            if len(values) == 1 and isinstance(values[0], str):
                values.append(f"not {values[0]}")  # whatever else it may be
            first = start.get(key, values[0])
            found += [{key: v} for v in values if v != first and isinstance(v, str) is strings]
    return found


def label(
    choice: Mapping[str, Any],
    start: Mapping[str, Any],
    switches: Mapping[str, Sequence[Any]],
    others: Sequence[Mapping[str, Any]],
) -> str:
    """A branch as people would write it: ` [loss_type='dapo']`.

    Without a choice of its own it is named by the strings that the others change.
    """
    changed = {key for other in others for key in other}
    chosen = dict(choice) or {
        key: start.get(key, values[0])
        for key, values in switches.items()
        if key in changed and isinstance(values[0], str)
    }
    parts = [f"{key.rpartition('.')[2]}={value!r}" for key, value in chosen.items()]
    return f" [{', '.join(parts)}]" if parts else ""
