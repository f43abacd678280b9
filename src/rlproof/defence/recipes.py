"""The script beside a published recipe, coordinate by coordinate."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rlproof.defence.model import Cell, Compared, Table
from rlproof.defence.worlds import along, binary_groups, chances
from rlproof.space.advantages import advantages
from rlproof.space.published import OBJECTIVES
from rlproof.space.recipes import RECIPES, TOLERANT, Recipe

Point = Mapping[str, str | float]
_TOLERANT = [recipe.name for recipe in TOLERANT]
_RATES = (0.1, 0.5)
_LARGEST = 10


def nearest(point: Point) -> str | None:
    """The recipe with the fewest coordinates that contradict a point; None for an empty point.

    Of equally near ones the one with more coordinates in agreement, then the better known.
    """
    if not {"surrogate", "baseline"} & set(point):
        return None

    def distance(name: str) -> tuple[int, int, int]:
        same, other = _counts(RECIPES[name], point)
        return other, -same, _TOLERANT.index(name) if name in _TOLERANT else len(_TOLERANT)

    return min(RECIPES, key=distance)


def _counts(recipe: Recipe, point: Point) -> tuple[int, int]:
    known = [axis for axis in recipe.coordinates if axis in point]
    same = sum(point[axis] in recipe.coordinates[axis] for axis in known)
    clash = not recipe.admits(point) and same == len(known)
    return same, len(known) - same + clash


def compare(
    name: str, declared: bool, point: Point, size: int, weights: tuple[float, float] | None
) -> Compared:
    """The coordinates side by side, and the weight of a hard prompt.

    Args:
        name: a key of `RECIPES`.
        declared: whether that is what the script is meant to be.
        point: the coordinates of the loss and of the advantages.
        size: G.
        weights: what the script's advantages give prompts of success rates .1 and .5 at that G.
    """
    recipe = RECIPES[name]
    rows: list[tuple[Cell, ...]] = []
    differ = []
    for axis, allowed in recipe.coordinates.items():
        value = point.get(axis)
        same = value in allowed
        if value is not None and not same:
            differ.append(axis)
        told = "unknown" if value is None else "yes" if same else "NO"
        rows.append((axis, "–" if value is None else str(value), " or ".join(allowed), told))
    rows += _clip_row(recipe, point, differ)
    rows += _weight_row(name, size, weights)
    who = "the declared recipe" if declared else "the nearest recipe"
    says = f"{who[0].upper()}{who[1:]} is {name}: " + (
        f"it differs in {', '.join(differ)}." if differ else "no coordinate contradicts it."
    )
    table = Table(
        f"The script beside {name}", ("coordinate", "script", name, "agrees"), tuple(rows)
    )
    return Compared(name, recipe.source, declared, says, table)


def _clip_row(recipe: Recipe, point: Point, differ: list[str]) -> list[tuple[Cell, ...]]:
    low, high = point.get("clip_low"), point.get("clip_high")
    if recipe.clip == "any" or low is None or high is None:
        return []
    same = (low == high) == (recipe.clip == "symmetric")
    if not same:
        differ.append("clip range")
    return [("clip range", f"{low:g}/{high:g}", recipe.clip, "yes" if same else "NO")]


def _weight_row(
    name: str, size: int, weights: tuple[float, float] | None
) -> list[tuple[Cell, ...]]:
    """How much more a hard prompt weighs than one of p = .5: what no factor changes."""
    meant = [_weight(name, size, rate) for rate in _RATES]
    if weights is None or None in meant or not weights[1] or not meant[1]:
        return []
    got, right = weights[0] / weights[1], float(meant[0] or 0.0) / meant[1]
    close = abs(got - right) <= 2e-3 * abs(right)
    told = "yes" if close else "NO"
    return [(f"w(.1)/w(.5) at G = {size}", f"{got:.4g}", f"{right:.4g}", told)]


def _weight(name: str, size: int, rate: float) -> float | None:
    """w(rate) that the recipe's own advantages give; None where they need more than rewards."""
    if name not in OBJECTIVES or size > _LARGEST:
        return None
    how = OBJECTIVES[name].objective.advantage
    if how.whiten != "none" or how.baseline not in ("group-mean", "leave-one-out", "none"):
        return None
    groups = binary_groups(size)
    rewards = np.array(groups)
    rows = np.array([np.asarray(advantages(row, size, how)) for row in rewards])
    inner = (rows * along(rewards, rate)).mean(axis=1)
    return float(chances(rewards, rate) @ inner)
