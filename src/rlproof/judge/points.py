"""From an `Objective` to the point that identification would give its loss."""

from __future__ import annotations

from rlproof.space.objective import Objective

_UNCLIPPED = {"unclipped", "log-prob", "soft-gate", "tapered", "gamma-weight"}
_CAPPED = {"dual-clip", "two-sided", "score-trust-region-tv", "score-trust-region-kl"}


def point_of(objective: Objective, length: float = 1.0) -> dict[str, str | float]:
    """The coordinates of a loss: what values and slopes of one function can show.

    Args:
        objective: any objective whose mismatch correction is off.
        length: the constant of a `constant` aggregation.
    """
    constant = objective.aggregation.startswith("constant")
    point: dict[str, str | float] = {
        "ratio": "token",
        "level": objective.ratio,
        "surrogate": objective.surrogate,
        "surrogate_weight": -1.0,
        "factor": 1 / length if constant else 1.0,
        "aggregation": objective.aggregation,
        "padding": "masked",
    }
    return point | _clip(objective) | _divergence(objective)


def _clip(objective: Objective) -> dict[str, str | float]:
    clip = objective.clip
    if objective.surrogate == "soft-gate":
        return {
            "temperature_positive": clip.positive_temperature,
            "temperature_negative": clip.negative_temperature,
        }
    if objective.surrogate in _UNCLIPPED and objective.ratio != "geometric-of-clipped":
        return {}
    found: dict[str, str | float] = {
        "clip_low": 1.0 if clip.low is None else clip.low,
        "clip_high": float("inf") if clip.high is None else clip.high,
        "clip_from": "arguments",
    }
    if objective.surrogate in _CAPPED:
        found["cap"] = clip.cap
    if clip.convention != "delta":
        found["clip_convention"] = clip.convention
    return found


def _divergence(objective: Objective) -> dict[str, str | float]:
    kl = objective.divergence
    if kl.place != "loss":
        return {"divergence": "none"}
    if kl.target == "old":
        return {"divergence": "none", "drift": kl.estimator, "drift_weight": kl.coefficient}
    suffix = {"straight-through-k2": "-straight-through", "naive": ""}.get(
        kl.gradient, f"-{kl.gradient}"
    )
    point: dict[str, str | float] = {
        "divergence": f"{kl.estimator}{suffix}",
        "divergence_weight": 1.0,
        "beta_from": "arguments",
    }
    if kl.aggregation not in ("same", objective.aggregation):
        point["divergence_aggregation"] = kl.aggregation
    return point
