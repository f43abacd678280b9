"""Whether a repaired file still computes what it computed, but for its faults.

The point of every function must be the original's with the faulty coordinates replaced. A
fault that is planted as a coordinate says what replaces it; for the others the axes that a
repair may move are listed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import isclose

from rlproof.faults.registry import catalogue
from rlproof.judge.axes import LOSS_AXES, is_published
from rlproof.judge.findings import FileReport, Finding

_SLOTS = {"aggregation", "padding", "factor", "level", "divergence_aggregation"}
_SCALE = {"scale", "eps", "eps_place", "factor"}
_CLIP = {"clip_from", "clip_low", "clip_high", "surrogate", "cap"}
_BOUNDS = {"clip_low", "clip_high", "clip_from"}
"""Bounds that no argument sets are measured through the ratio, so a wrong one shifts them."""
MOVES: dict[str, set[str]] = {
    "ADV001": {"baseline", *_SCALE},
    "ADV004": {"eps", "eps_place"},
    "ADV005": _SCALE,
    "ADV006": {"eps", "eps_place"},
    "ADV007": _SCALE,
    "ADV008": {"baseline", *_SCALE},
    "ADV009": {"baseline", *_SCALE},
    "ADV011": {*_SCALE, "eps", "eps_place"},
    "ADV012": {"baseline", *_SCALE},
    "ADV013": {"baseline", *_SCALE},
    "ADV015": {"sign", "baseline", *_SCALE},
    "ADV016": {"baseline", *_SCALE},
    "ADV017": _SCALE,
    "AGG004": _SLOTS,
    "AGG005": _SLOTS,
    "AGG006": _SLOTS,
    "KLD001": {"divergence_weight"},
    "KLD005": {"divergence", "divergence_weight", "beta_from", "drift", "drift_weight"},
    "KLD007": {"beta_from", "divergence_weight"},
    "KLD008": {*_SLOTS},
    "KLD009": {"divergence", "drift"},
    "LOP001": {"ratio", "surrogate"},
    "MSK001": _SLOTS,
    "MSK002": _SLOTS,
    "MSK003": _SLOTS,
    "OBJ001": {"baseline", *_SCALE, *_SLOTS, *_CLIP, "divergence", "beta_from", "ratio"},
    "SUR001": _BOUNDS,
    "SUR002": _BOUNDS,
    "SUR003": _BOUNDS,
    "SUR004": {"surrogate"},
    "SUR005": {"surrogate_weight"},
    "SUR007": _BOUNDS,
    "SUR008": _CLIP,
    "SUR009": {"surrogate"},
    "SUR010": {"level", "ratio"},
    "SUR011": _SLOTS,
    "SUR012": {"ratio", "surrogate"},
    "SUR013": {"surrogate"},
    "SUR016": {"ratio_to", "ratio", *_BOUNDS},
}
_SCORING = {
    "LGP001", "LGP002", "LGP003", "LGP004", "LGP005", "LGP006", "LGP007", "LGP008", "LGP009",
    "LGP010", "MSK009", "MSK013", "MSK014",
}  # fmt: skip
"""Faults of log-probs, which the functions that call the faulty one have as well."""
_ANY = {"SUR014", "SUR015", "LOP012", "MET004"} | _SCORING
"""Their values are those of no point at all, or each of their axes is wrong at once."""
_UNSCALES = {"ADV007", "ADV008", "OBJ001"}
"""Faults of a scale whose repair may be to leave it out."""
_LINE = re.compile(r", line \d+")
_SIGNED = {"surrogate_weight", "divergence_weight"}
Point = Mapping[str, str | float]


def strays(
    before: FileReport,
    after: FileReport,
    faults: Iterable[Finding],
    callers: Mapping[str, set[str]] | None = None,
    helpers: Mapping[str, set[str]] | None = None,
) -> list[str]:
    """Functions whose point moved along an axis that no fault of theirs allows.

    A fault counts for all branches of its function, which share lines, for what stands inline in
    it, and for the functions that it calls, where its repair may be.

    Args:
        before: what the file was.
        after: what it is now.
        faults: all that were found.
        callers: by function, the functions that call it.
        helpers: by function, those without a role that it reaches: a fault of theirs is its own.
    """
    codes: dict[str, set[str]] = {}
    for finding in faults:
        codes.setdefault(whole(finding.place.function), set()).add(finding.code)
    scoring = set().union(*codes.values()) & _SCORING
    now = {plain(target.name): target.objective for target in after.targets}

    targets = {whole(target.name) for target in before.targets}
    elsewhere = set(codes) - targets
    """Functions with a fault that are judged in those that call them."""

    def allowed(name: str, role: str) -> set[str]:
        own = {
            name,
            name.partition(" (inline")[0],
            *(callers or {}).get(name, ()),
            *(helpers or {}).get(name, ()),
        }
        own |= {one for one in elsewhere if name in (callers or {}).get(one, ())}
        shared = scoring if role == "log-probs" else set[str]()
        return shared.union(*(codes.get(one, set()) for one in own))

    return [
        target.name
        for target in before.targets
        if not _kept(
            target.objective,
            now.get(plain(target.name), {}),
            allowed(whole(target.name), str(target.role)),
            target.role == "loss",
        )
    ]


def whole(name: str) -> str:
    """The name of a function without the branch that settings choose."""
    return plain(name).partition(" [")[0]


def plain(name: str) -> str:
    """The name of an inline loss or inline advantages without its line, which an edit may move."""
    return _LINE.sub("", name)


def key(finding: Finding) -> tuple[str, str]:
    """What makes two findings in two versions of a file the same: code and function."""
    return finding.code, plain(finding.place.function)


def _kept(before: Point, after: Point, codes: set[str], trains: bool) -> bool:
    if codes & _ANY:
        return True
    moves: set[str] = set().union(*(MOVES.get(code, set()) for code in codes))
    plants = [plant for code in codes for plant in catalogue()[code].plants]
    for plant in plants:
        moves.add(plant.axis)
    if _loses(before, after, codes):
        return False
    return all(
        _same(value, after.get(axis))
        or (axis in moves and (not trains or _may_become(axis, value, after.get(axis), moves)))
        or (axis == "same_as" and bool(moves))  # a remark on the others, which moved
        for axis, value in before.items()
    )


def _loses(before: Point, after: Point, codes: set[str]) -> bool:
    """Whether advantages are no longer centred, or no longer scaled and no fault is in that."""
    gone = {
        axis for axis in ("baseline", "scale")
        if after.get(axis) == "none" and before.get(axis, "none") != "none"
    }  # fmt: skip
    return "baseline" in gone or ("scale" in gone and not codes & _UNSCALES)


def _may_become(axis: str, before: str | float, after: str | float | None, moves: set[str]) -> bool:
    """A sign may turn round; a word may become a published one."""
    if (
        axis in _SIGNED
        and "beta_from" not in moves
        and isinstance(before, float)
        and isinstance(after, float)
    ):
        return isclose(abs(before), abs(after), rel_tol=1e-6) or before == 0
    if axis in LOSS_AXES and isinstance(after, str):
        return is_published(axis, after)
    return True


def _same(before: str | float, after: str | float | None) -> bool:
    if isinstance(before, float) and isinstance(after, float):
        return isclose(before, after, rel_tol=1e-6, abs_tol=1e-12)
    return before == after
