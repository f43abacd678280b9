"""Reports as plain data and back: what a cache keeps and a helper process sends. No pickle.

Only the classes named here are ever made, from all of their fields; a fault is its code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import msgspec

import rlproof.errors as errors
from rlproof.errors import RlproofError
from rlproof.faults.model import Evidence, Fault, Severity
from rlproof.faults.registry import catalogue
from rlproof.faults.seen import Place
from rlproof.judge.findings import (
    FileReport,
    Finding,
    Fix,
    FixStatus,
    Remark,
    Replacement,
    Skipped,
    TargetReport,
)
from rlproof.read.source import Cell
from rlproof.read.targets import Role
from rlproof.single import Single

_MARK = "="
_CLASSES: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        Cell, Evidence, FileReport, Finding, Fix, Place, Remark, Replacement, Single, Skipped,
        TargetReport,
    )
}  # fmt: skip
_ENUMS: dict[str, type[Enum]] = {kind.__name__: kind for kind in (FixStatus, Role, Severity)}
_LARGEST = 2**63


class NotStorableError(ValueError):
    """A value has no plain form, or bytes are not those of a stored value."""


def dumps(value: Any) -> bytes:
    """Bytes of a value.

    Raises:
        NotStorableError: it holds something of another kind.
    """
    return msgspec.msgpack.encode(plain(value))


def loads(raw: bytes) -> Any:
    """The value of bytes.

    Raises:
        NotStorableError: they are not what `dumps` makes.
    """
    try:
        return _made(msgspec.msgpack.decode(raw))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise NotStorableError(f"not a stored value: {error}") from None


def plain(value: Any) -> Any:
    """The same as lists, texts, numbers, and tables that name what they stand for."""
    match value:
        case None | bool() | bytes():
            return value
        case Enum():
            return _tagged(type(value).__name__, value.value, _ENUMS)
        case str():
            try:
                value.encode()
            except UnicodeEncodeError:  # bytes of a path that are no text
                return {_MARK: ["str", value.encode(errors="surrogatepass")]}
            return str(value)
        case float():
            return float(value)  # NumPy's subclass of it too
        case int():
            return value if abs(value) < _LARGEST else {_MARK: ["int", hex(value)]}
        case list():
            return [plain(item) for item in value]
        case tuple():
            return {_MARK: ["tuple", [plain(item) for item in value]]}
        case dict():
            return {_MARK: ["dict", [[plain(k), plain(v)] for k, v in value.items()]]}
        case Fault():
            return {_MARK: ["Fault", value.code]}
        case RlproofError():
            return {_MARK: ["Error", [type(value).__name__, plain(str(value))]]}
    if not is_dataclass(value) or isinstance(value, type):
        raise NotStorableError(f"a {type(value).__name__} can't be stored")
    inner = [plain(getattr(value, one.name)) for one in fields(value)]
    return _tagged(type(value).__name__, inner, _CLASSES)


def _tagged(name: str, inner: Any, known: dict[str, Any]) -> Any:
    if name not in known:
        raise NotStorableError(f"a {name} can't be stored")
    return {_MARK: [name, inner]}


def _made(value: Any) -> Any:
    if isinstance(value, list):
        return [_made(item) for item in value]
    if not isinstance(value, dict):
        return value
    name, inner = value[_MARK]
    if name in _SPECIAL:
        return _SPECIAL[name](inner)
    if name in _ENUMS:
        return _ENUMS[name](inner)
    kind = _CLASSES[name]
    if len(inner) != len(fields(kind)):
        raise NotStorableError(f"a {name} of another version")
    return kind(*map(_made, inner))


def _error(inner: Any) -> RlproofError:
    name, message = inner
    kind = getattr(errors, name, RlproofError)
    known = isinstance(kind, type) and issubclass(kind, RlproofError)
    return (kind if known else RlproofError)(_made(message))


_SPECIAL: dict[str, Callable[[Any], Any]] = {
    "str": lambda raw: raw.decode(errors="surrogatepass"),
    "int": lambda text: int(text, 16),
    "tuple": lambda items: tuple(map(_made, items)),
    "dict": lambda items: {_made(key): _made(value) for key, value in items},
    "Fault": lambda code: catalogue()[code],
    "Error": _error,
}
