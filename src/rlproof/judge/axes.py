"""The values of every axis: the published ones, then the faulty ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from rlproof.faults.registry import catalogue
from rlproof.space import advantages, aggregation, divergences, ratios, scores

_PUBLISHED: dict[str, dict[str, Callable[..., Any]]] = {
    "ratio": dict(ratios.PUBLISHED),
    "surrogate": dict(scores.ALL),
    "divergence": {**divergences.PUBLISHED, **divergences.IN_COEFFICIENT},
    "aggregation": dict(aggregation.PUBLISHED),
    "scale": dict(advantages.SCALES),
}
RATIO_WEIGHTED = {
    "k3-ratio-weighted": "k3-straight-through",
    "k1-ratio-weighted": "k1-score-weighted",
}
"""Divergences multiplied by the differentiable ratio: at ratio 1 the ratio can't be seen."""
LOSS_AXES = ("ratio", "surrogate", "divergence", "aggregation")


@cache
def values(axis: str) -> dict[str, Callable[..., Any]]:
    """Name to formula. Published values come first, so that they win a tie."""
    merged = dict(_PUBLISHED[axis])
    for fault in catalogue().values():
        for plant in fault.plants:
            if plant.axis == axis:
                merged.setdefault(plant.value, plant.formula)
    return merged


def is_published(axis: str, value: str) -> bool:
    """Whether this value of the axis is published, not a fault."""
    return value == "none" or value in RATIO_WEIGHTED or value in _PUBLISHED[axis]
