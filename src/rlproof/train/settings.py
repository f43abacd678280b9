"""Tables of settings to frozen dataclasses: every wrong key or value is a ConfigError.

A field's annotation says which values it takes; the sections of `rlproof.train.config` and the
coordinates of `rlproof.space` are read by the same function.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from difflib import get_close_matches
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from rlproof.errors import ConfigError, quoted

T = TypeVar("T")
_WORDS = {
    str: "text", bool: "true or false", int: "a whole number", float: "a number",
    Mapping: "a table",
}  # fmt: skip


def hints(kind: type) -> dict[str, Any]:
    """The resolved annotations of a dataclass by field."""
    return get_type_hints(kind)


def built(kind: type[T], table: Mapping[str, Any], where: str) -> T:
    """A dataclass from a table; `where` is the table's name in messages.

    Raises:
        ConfigError: an unknown key, with the nearest name; a missing one; a value of a wrong kind.
    """
    values = _values(kind, table, where)
    lacking = [
        f.name
        for f in fields(kind)  # type: ignore[arg-type]
        if f.name not in values and f.default is MISSING and f.default_factory is MISSING
    ]
    if lacking:
        raise ConfigError(
            f"{named(where, lacking[0])} is missing; expected {_word(kind, lacking[0])}"
        )
    return kind(**values)


def changed(base: T, table: Mapping[str, Any], where: str) -> T:
    """A dataclass with some of its values replaced; nested tables change nested dataclasses.

    Raises:
        ConfigError: as for `built`.
    """
    values = _values(type(base), table, where, base)
    return replace(base, **values)  # type: ignore[type-var]


def named(where: str, key: str) -> str:
    """`[sampling] top_p`, or the key alone at the top of the file."""
    return f"[{where}] {key}" if where else key


def _values(
    kind: type[Any], table: Mapping[str, Any], where: str, base: Any = None
) -> dict[str, Any]:
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where or 'the file'} is {quoted(table)}, expected a table of settings")
    types_by_name = hints(kind)
    known = [f.name for f in fields(kind)]
    values = {}
    for key, value in table.items():
        if key not in known:
            raise ConfigError(_unknown(where, key, known))
        inner = f"{where}.{key}" if where else key
        if base is not None and is_dataclass(getattr(base, key)):
            values[key] = changed(getattr(base, key), value, inner)
        else:
            values[key] = _converted(types_by_name[key], value, where, key)
    return values


def _unknown(where: str, key: str, known: list[str]) -> str:
    near = get_close_matches(key, known, 1)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
    what = (
        f"[{where}] has no setting {quoted(key)}"
        if where
        else f"no section is called {quoted(key)}"
    )
    return f"{what}; {hint}"


def _converted(kind: Any, value: Any, where: str, key: str) -> Any:
    """The value as the annotation wants it."""
    for one in _alternatives(kind):
        made = _as(one, value, where, key)
        if made is not MISSING:
            return made
    raise ConfigError(f"{named(where, key)} is {quoted(value)}, expected {_said(kind)}")


def _alternatives(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _as(kind: Any, value: Any, where: str, key: str) -> Any:
    """The value as one plain kind, or MISSING."""
    if isinstance(kind, type) and is_dataclass(kind):
        if isinstance(value, kind):
            return value
        return built(kind, value, f"{where}.{key}" if where else key)
    origin = get_origin(kind)
    if origin is tuple:
        return _tuple(get_args(kind), value, where, key)
    if origin is not None:  # Mapping[str, Any]
        return dict(value) if isinstance(value, Mapping) else MISSING
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return MISSING
    if kind is type(None):
        return None if value is None else MISSING
    plain = type(value) is kind or (kind is str and isinstance(value, str))
    return value if plain else MISSING


def _tuple(kinds: tuple[Any, ...], value: Any, where: str, key: str) -> Any:
    if not isinstance(value, list | tuple):
        return MISSING
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        kinds = (kinds[0],) * len(value)
    if len(kinds) != len(value):
        return MISSING
    return tuple(_converted(k, v, where, key) for k, v in zip(kinds, value, strict=True))


def _word(kind: type[Any], name: str) -> str:
    return _said(hints(kind)[name])


def _said(kind: Any) -> str:
    """An annotation in words."""
    parts = []
    for one in _alternatives(kind):
        origin = get_origin(one)
        if one is type(None):
            continue
        if origin is tuple:
            inner = _WORDS.get(get_args(one)[0], "values")
            parts.append(f"a list, each {inner}")
        else:
            parts.append(_WORDS.get(origin or one, getattr(one, "__name__", str(one))))
    return " or ".join(parts)
