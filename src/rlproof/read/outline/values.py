"""What is known of a value while a region is lowered: roles that reach it, and what it lacks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from rlproof.read.names import Slot


class _Unknown:
    """Stands for a value that is no known constant."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = _Unknown()
POLICIES = frozenset({Slot.NEW, Slot.OLD, Slot.REF})
ROLES = POLICIES | {Slot.ADVANTAGES, Slot.REWARDS, Slot.MASK, Slot.LENGTHS}
"""Slots of arrays; all others are coefficients and settings."""


@dataclass(frozen=True, slots=True)
class Value:
    """The roles that a value is made of, why it can't be had, and the constant that it is."""

    slots: frozenset[Slot] = frozenset()
    problem: str | None = None
    const: Any = UNKNOWN
    leaf: str | None = None
    """The access path, where it is a setting of unknown value."""
    local: bool = False
    """Whether the path starts at something that the region itself made."""

    @property
    def known(self) -> bool:
        """Whether it is a constant."""
        return self.const is not UNKNOWN


PLAIN = Value()


def joined(*values: Value) -> Value:
    """A value computed from others: all their roles, the first thing that is lacking."""
    slots = frozenset[Slot]().union(*(value.slots for value in values))
    problem = next((value.problem for value in values if value.problem), None)
    return Value(slots, problem)


def merged(one: Value, other: Value) -> Value:
    """A value that comes from one of two branches."""
    if one == other:
        return one
    both = joined(one, other)
    same = one.known and other.known and type(one.const) is type(other.const)
    return replace(both, const=one.const) if same and one.const == other.const else both
