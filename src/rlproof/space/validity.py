"""Which values a coordinate may have, and which two contradict each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from rlproof.space import advantages, divergences, filters, masks, mismatch
from rlproof.space.aggregation import PUBLISHED as AGGREGATIONS
from rlproof.space.ratios import LEVELS
from rlproof.space.scores import ALL as SURROGATES
from rlproof.space.surrogates import CONVENTIONS

Coordinates = Mapping[str, Any]


class ObjectiveError(ValueError):
    """Coordinates that are unknown, contradict each other, or lack what they are computed from."""


_OF_A_MISMATCH = {
    "level": mismatch.LEVELS,
    "action": mismatch.ACTIONS,
    "carried": mismatch.CARRIED,
    "statistic": tuple(mismatch.STATISTICS),
    "numerator": mismatch.NUMERATORS,
}
ALLOWED: Mapping[str, tuple[str, ...]] = {
    "ratio": LEVELS,
    "surrogate": tuple(SURROGATES),
    "aggregation": tuple(AGGREGATIONS),
    "clip.convention": CONVENTIONS,
    **{f"mismatch.{name}": allowed for name, allowed in _OF_A_MISMATCH.items()},
    **{f"rejection.{name}": allowed for name, allowed in _OF_A_MISMATCH.items()},
    "divergence.place": divergences.PLACES,
    "divergence.target": divergences.TARGETS,
    "divergence.estimator": tuple(divergences.ESTIMATORS),
    "divergence.gradient": divergences.GRADIENTS,
    "divergence.aggregation": ("same", *AGGREGATIONS),
    "entropy.aggregation": ("same", *AGGREGATIONS),
    "advantage.baseline": advantages.BASELINE_NAMES,
    "advantage.scale": advantages.SCALE_NAMES,
    "advantage.eps_place": advantages.EPS_PLACES,
    "advantage.whiten_eps_place": advantages.EPS_PLACES,
    "advantage.singleton": advantages.SINGLETONS,
    "advantage.zero_variance": advantages.ZERO_VARIANCE,
    "advantage.whiten": advantages.WHITENINGS,
    "advantage.combine": advantages.COMBINATIONS,
    "advantage.clip_place": advantages.CLIP_PLACES,
    "filter.rule": filters.RULES,
    "masks.truncated": masks.TRUNCATED,
    "masks.end": masks.ENDS,
}
"""The values of every coordinate that has named ones."""

_PROBABILITIES = {
    "masked-probability", "trust-region-tv", "trust-region-kl",
    "score-trust-region-tv", "score-trust-region-kl",
}  # fmt: skip
"""Surrogates that need the old probability of the token, not that of a row."""
_IN_ADVANTAGES = ("reward", "token-reward", "advantage")

CLASHES: tuple[tuple[str, str, Callable[[Coordinates], bool]], ...] = (
    (
        "ratio",
        "surrogate",
        lambda k: k["ratio"] == "geometric-of-clipped" and k["surrogate"] != "unclipped",
    ),
    (
        "ratio",
        "surrogate",
        lambda k: k["ratio"].startswith("sequence") and k["surrogate"] in _PROBABILITIES,
    ),
    (
        "clip.low",
        "clip.convention",
        lambda k: (
            k["clip.convention"] == "delta"
            and k["surrogate"] not in _PROBABILITIES
            and (k["clip.low"] or 0.0) >= 1
        ),
    ),
    (
        "clip.low",
        "clip.high",
        lambda k: (
            k["clip.convention"] == "absolute"
            and None not in (k["clip.low"], k["clip.high"])
            and k["clip.low"] >= k["clip.high"]
        ),
    ),
    (
        "divergence.gradient",
        "divergence.place",
        lambda k: k["divergence.gradient"] != "naive" and k["divergence.place"] in _IN_ADVANTAGES,
    ),
    (
        "divergence.target",
        "divergence.place",
        lambda k: k["divergence.target"] == "old" and k["divergence.place"] in _IN_ADVANTAGES,
    ),
    (
        "divergence.aggregation",
        "divergence.place",
        lambda k: k["divergence.aggregation"] != "same" and k["divergence.place"] != "loss",
    ),
    (
        "entropy.aggregation",
        "entropy.coefficient",
        lambda k: k["entropy.aggregation"] != "same" and not k["entropy.coefficient"],
    ),
    (
        "advantage.zero_variance",
        "advantage.scale",
        lambda k: k["advantage.zero_variance"] == "unscaled" and k["advantage.scale"] == "none",
    ),
    (
        "advantage.discount",
        "divergence.place",
        lambda k: k["advantage.discount"] != 1 and k["divergence.place"] != "token-reward",
    ),
    (
        "filter.low",
        "filter.high",
        lambda k: k["filter.rule"] == "mean-range" and k["filter.low"] >= k["filter.high"],
    ),
    *(
        (
            f"{part}.low",
            f"{part}.high",
            lambda k, p=part: k[f"{p}.action"] != "none" and k[f"{p}.low"] >= k[f"{p}.high"],
        )
        for part in ("mismatch", "rejection")
    ),
    *(
        (
            f"{part}.statistic",
            f"{part}.action",
            lambda k, p=part: k[f"{p}.statistic"] != "ratio" and k[f"{p}.action"] == "truncate",
        )
        for part in ("mismatch", "rejection")
    ),
)
"""Two coordinates and what makes them contradict each other."""


def check(known: Coordinates) -> None:
    """Refuse coordinates that are unknown or contradict each other.

    Raises:
        ObjectiveError: the first one found, with the value and what is allowed.
    """
    for axis, allowed in ALLOWED.items():
        if known[axis] not in allowed:
            raise ObjectiveError(
                f"{axis} = {known[axis]!r} is unknown; expected one of {', '.join(allowed)}"
            )
    for first, second, clash in CLASHES:
        if clash(known):
            raise ObjectiveError(
                f"{first} = {known[first]!r} contradicts {second} = {known[second]!r}"
            )


def flat(part: Any, prefix: str = "") -> Any:
    """(dotted name, value) of every coordinate of nested dataclasses."""
    for one in fields(part):
        value = getattr(part, one.name)
        if hasattr(value, "__dataclass_fields__"):
            yield from flat(value, f"{prefix}{one.name}.")
        else:
            yield f"{prefix}{one.name}", value
