"""Records that hold rewards: objects with attributes and keys, or dictionaries."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_GROUPS = {"id", "idx", "index", "uid", "group"}


class Record:
    """An entry that is read and written by attribute or by key."""

    def __getitem__(self, key: str) -> Any:
        try:
            return vars(self)[key]
        except KeyError:
            raise KeyError(key) from None

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, key, value)

    def __iter__(self) -> Iterator[str]:
        return iter(vars(self))

    def keys(self) -> list[str]:
        """The names of its fields."""
        return list(vars(self))

    def get(self, key: str, default: Any = None) -> Any:
        """As of a dictionary."""
        return vars(self).get(key, default)

    def copy(self) -> Any:
        """Another record with the same fields."""
        return dataclasses.replace(self)  # type: ignore[type-var]

    def _replace(self, **fields: Any) -> Any:
        """As of a named tuple."""
        return dataclasses.replace(self, **fields)  # type: ignore[type-var]


def make(wire: Mapping[str, Any], number: Callable[[float], Any]) -> Any:
    """The argument: rewards of each group in `groups`, laid out as a function reads them.

    Args:
        wire: `reward`, `fields`, `keyed`, `holder`, `nested`, as `rlproof.read.records` finds
            them, and `groups`.
        number: what makes a number of the script's kind.
    """
    names = [wire["reward"], *wire["fields"]]
    kind = dataclasses.make_dataclass("Record", names, bases=(Record,))
    groups = []
    for index, rewards in enumerate(wire["groups"]):
        others = [_value(name, index) for name in wire["fields"]]
        fields = [dict(zip(names, [number(r), *others], strict=True)) for r in rewards]
        groups.append([dict(f) if wire["keyed"] else kind(**f) for f in fields])
    held = groups if wire["nested"] else [record for group in groups for record in group]
    if wire["holder"] is None:
        return held
    return dataclasses.make_dataclass("Holder", [wire["holder"]], bases=(Record,))(held)


def _value(name: str, index: int) -> Any:
    """What the records of one group have in common, of the kind that the name speaks of."""
    words = set(name.lower().split("_"))
    if words & {"ids", "tokens"}:
        return [index]
    return index if words & _GROUPS else f"prompt {index}"
