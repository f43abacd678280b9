"""The numbers of all claims, computed on all cores; kept while the code behind them is the same."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from hashlib import sha256
from pathlib import Path

import numpy

import rlproof
from rlproof.lab.claims.model import Number
from rlproof.lab.claims.registry import find, modules

_PARTS = ("lab", "space", "faults", "tiny.py")
Numbers = dict[str, tuple[Number, ...]]


def numbers(kept: Path) -> Numbers:
    """Every claim's numbers, from the file `kept` if nothing has changed since it was written."""
    stamp = _stamp()
    if kept.is_file():
        known, found = pickle.loads(kept.read_bytes())
        if known == stamp:
            return dict(found)
    computed = _compute(modules())
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(pickle.dumps((stamp, computed)))
    return computed


def _compute(claims: Iterable[str]) -> Numbers:
    names = list(claims)
    with ProcessPoolExecutor() as pool:
        return dict(zip(names, pool.map(_of, names), strict=True))


def _of(claim: str) -> tuple[Number, ...]:
    return find(claim).numbers()


def _stamp() -> str:
    """A hash of all code that the numbers depend on, and of NumPy's version."""
    root = Path(rlproof.__file__).parent
    digest = sha256(numpy.__version__.encode())
    for part in _PARTS:
        for file in sorted([root / part, *(root / part).rglob("*.py")]):
            if file.is_file():
                digest.update(str(file.relative_to(root)).encode() + file.read_bytes())
    return digest.hexdigest()
