"""The catalogue: every module of this package named like a code, in order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any

from rlproof.faults.model import Fault

_CODE_FILE = re.compile(r"([a-z]{3}\d{3})\.py")


@cache
def catalogue() -> dict[str, Fault]:
    """All faults by code, sorted. Adding a file adds a fault; there is no list to keep."""
    return {fault.code: fault for fault in coded("rlproof.faults", "FAULT")}


def coded(package: str, constant: str) -> Iterator[Any]:
    """A constant of every module of a package that is named like a code, in order."""
    names = sorted(
        match[1]
        for entry in files(package).iterdir()
        if (match := _CODE_FILE.fullmatch(entry.name))
    )
    for name in names:
        yield getattr(import_module(f"{package}.{name}"), constant)


def find(code_or_name: str) -> Fault:
    """The fault with this code or name, in any case.

    Raises:
        KeyError: no such fault; the message names the nearest ones.
    """
    wanted = code_or_name.strip()
    for fault in catalogue().values():
        if wanted.upper() == fault.code or wanted.lower() == fault.name:
            return fault
    known = [*catalogue(), *(fault.name for fault in catalogue().values())]
    near = get_close_matches(wanted.upper(), known, 2) + get_close_matches(wanted.lower(), known, 2)
    hint = f"did you mean {' or '.join(near)}?" if near else "`rlproof faults` lists them"
    raise KeyError(f"no fault is called {code_or_name!r}: {hint}")


def matching(prefix_or_name: str) -> set[str]:
    """Codes selected by a code, a prefix such as `SUR`, or a name.

    Raises:
        KeyError: nothing matches.
    """
    wanted = prefix_or_name.strip()
    codes = {code for code in catalogue() if wanted and code.startswith(wanted.upper())}
    return codes or {find(wanted).code}
