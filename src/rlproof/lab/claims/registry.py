"""All claims: every module of this package that is named like a claim, in order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.resources import files

from rlproof.lab.claims.model import Claim
from rlproof.lab.claims.page import parse

_FILE = re.compile(r"(([a-e])(\d\d)_(\w+))\.py")
SECTIONS = {
    "A": "Baselines and advantages",
    "B": "Divergences and their estimators",
    "C": "Ratio, clip, surrogate",
    "D": "Aggregation and length",
    "E": "Numerics, sampling, dynamics",
}


@cache
def modules() -> dict[str, str]:
    """Module names by id, in order, without importing one. Adding a file adds a claim.

    Raises:
        ValueError: two files have one id.
    """
    found = [m for entry in files("rlproof.lab.claims").iterdir() if (m := _FILE.match(entry.name))]
    found.sort(key=lambda match: match[1])
    names = {f"{match[2].upper()}{int(match[3])}": match[1] for match in found}
    if len(names) != len(found):
        raise ValueError(f"two claims have one id: {[match[1] for match in found]}")
    return names


@cache
def find(id_or_name: str) -> Claim:
    """The claim with this id or name, in any case; imports its file alone.

    Raises:
        KeyError: no such claim; the message names the nearest ones.
        ValueError: its text lacks something.
    """
    wanted = id_or_name.strip()
    for known, module in modules().items():
        if wanted.upper() == known or wanted.lower().replace("-", "_") == module[4:]:
            return _load(known, module)
    known_names = [*modules(), *(_name(module) for module in modules().values())]
    near = get_close_matches(wanted.upper(), known_names, 2)
    near += get_close_matches(wanted.lower(), known_names, 2)
    hint = f"did you mean {' or '.join(near)}?" if near else "`rlproof defend` lists them"
    raise KeyError(f"no claim is called {id_or_name!r}: {hint}")


def only(*ids_or_names: str) -> Iterator[Claim]:
    """These claims, or those of a section letter; all of them if none is given.

    Raises:
        KeyError: nothing is called so.
    """
    for wanted in ids_or_names or tuple(SECTIONS):
        letter = wanted.strip().upper()
        ids = [known for known in modules() if known[0] == letter]
        yield from map(find, ids if letter in SECTIONS else [wanted])


def _name(module: str) -> str:
    return module[4:].replace("_", "-")


def _load(known: str, module: str) -> Claim:
    loaded = import_module(f"rlproof.lab.claims.{module}")
    page = parse(loaded.__doc__)
    if page.id != known:
        raise ValueError(f"{module}.py is about {page.id}, expected {known}")
    return Claim(
        id=known,
        name=_name(module),
        title=page.title,
        statement=page.sections["Statement"],
        conditions=page.sections["Conditions"],
        proof=page.sections["Proof"],
        refutes=page.sections["Refutes"],
        sources=page.sources,
        numbers=loaded.numbers,
    )
