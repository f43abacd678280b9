"""Find the point of the space that reproduces what a loss answered, axis by axis.

Every axis is fitted on the probe that isolates it, so no product of axes is enumerated. The
last probe, everything at once, decides whether the point as a whole is the objective.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import log1p

import numpy as np
from numpy.typing import NDArray

from rlproof.faults.model import rounded
from rlproof.faults.seen import Answer, Batch, Point
from rlproof.judge.axes import RATIO_WEIGHTED, is_published, values
from rlproof.judge.evaluate import evaluate
from rlproof.probe.loss import EPS, FAR, Grid, LossObservation, Weights
from rlproof.space.surrogates import Clip

Array = NDArray[np.float64]
TOLERANCE = 2e-4
"""Largest relative residual of a fit: above float32 rounding, far below any other formula."""
_ZERO = 1e-9
_UNBOUNDED = 0.06  # the smallest ratio of the grid is e⁻³ = 0.0498: nothing clipped it
_NO_CAP = 1e9  # so high that a dual clip is a plain one, which comes first
_CAPPED = ("dual-clip", "two-sided", "score-trust-region-tv", "score-trust-region-kl")
_CONSTANT = {"sequence-sum": "constant-per-sequence", "sum": "constant"}


@dataclass(frozen=True, slots=True)
class Fit:
    """A formula, the factor it enters with, and the relative residual of value and slope."""

    names: tuple[str, ...]
    factor: float
    residual: float
    clip: Clip


def identify(
    seen: LossObservation, takes_clip: tuple[bool, bool], takes_beta: bool
) -> dict[str, str | float]:
    """The coordinates that could be identified.

    `takes_clip` says whether the lower and the upper bound are arguments of the loss.
    """
    point: dict[str, str | float] = {}
    term = fit_surrogate(seen, takes_clip)
    if term:
        point |= {"ratio": term.names[0], "surrogate": term.names[1]}
        point |= _clip_coordinates(term, seen, takes_clip)
        point["surrogate_weight"] = float(np.sign(term.factor))
        point["factor"] = rounded(abs(term.factor))
    point |= _divergence_coordinates(seen, takes_beta, float(point.get("factor", 1.0)))
    point |= _drift_coordinates(seen.drift, float(point.get("factor", 1.0)))
    if weights := _aggregation(seen):
        point["aggregation"] = _CONSTANT.get(weights, weights) if _is_scaled(point) else weights
        point["padding"] = _padding(seen.weights.surrogate, seen)
    if term and weights:
        point |= _divergence_aggregation(point, seen)
        _settle_level(point, seen)
        if point.get("divergence_aggregation") == point["aggregation"]:
            del point["divergence_aggregation"]
        _settle_weighting(point, seen)
    return point


def _is_scaled(point: Point) -> bool:
    return abs(float(point.get("factor", 1.0)) - 1) > TOLERANCE


def residual(point: Point, seen: LossObservation) -> float:
    """How far the point is from the batch with everything at once; infinity if incomplete."""
    if not {"ratio", "aggregation", "divergence", "surrogate"} <= set(point):
        return float("inf")
    return distance(evaluate(point, seen.full[0]), seen.full[1])


def distance(got: Answer, expected: Answer) -> float:
    """Relative distance of value and gradient together."""
    first = np.array([got.value, *np.ravel(got.gradient)])
    second = np.array([expected.value, *np.ravel(expected.gradient)])
    return _relative(first, second)


def _relative(got: Array, expected: Array) -> float:
    size = max(float(np.linalg.norm(expected)), 1e-12)
    return float(np.linalg.norm(got - expected)) / size


def _best(fits: list[Fit]) -> Fit | None:
    """The best fit, the earlier one where two are equally good, if it is good enough."""
    good = [fit for fit in fits if fit.residual < TOLERANCE]
    if not good:
        return None
    floor = min(fit.residual for fit in good)
    return next(fit for fit in good if fit.residual <= max(2 * floor, 1e-6))


def _fit(names: tuple[str, ...], shape: tuple[Array, Array], grid: Grid, clip: Clip) -> Fit | None:
    """Least squares of value and slope together on one formula."""
    model = np.concatenate(shape)
    observed = np.concatenate([grid.value, grid.slope])
    norm = float(model @ model)
    if not np.isfinite(norm) or norm < _ZERO:
        return None
    factor = float(model @ observed) / norm
    if abs(factor) < _ZERO or float(np.linalg.norm(observed)) < _ZERO:
        return None
    return Fit(names, factor, _relative(factor * model, observed), clip)


def fit_surrogate(seen: LossObservation, takes_clip: tuple[bool, bool]) -> Fit | None:
    """Ratio, surrogate and clip bounds of the single-token term."""
    return _best(_surrogate_fits(seen, takes_clip))


def nearest_surrogate(seen: LossObservation, takes_clip: tuple[bool, bool]) -> Fit | None:
    """The surrogate with the smallest residual, however large that is."""
    fits = _surrogate_fits(seen, takes_clip)
    return min(fits, key=lambda fit: fit.residual, default=None)


def _surrogate_fits(seen: LossObservation, takes_clip: tuple[bool, bool]) -> list[Fit]:
    grid = seen.surrogate
    given = takes_clip if clip_matters(seen) else (False, False)
    size = abs(seen.unit) if abs(seen.unit) > _ZERO else 1.0
    clips = list(dict.fromkeys(_clips(grid, size, given) + _clips(grid, -size, given)))
    fits: list[Fit] = []
    for ratio_name, ratio_formula in values("ratio").items():
        ratio, slope = ratio_formula(grid.new, grid.old)
        for (name, formula), clip in product(values("surrogate").items(), clips):
            with np.errstate(all="ignore"):
                shape = formula(ratio, slope, grid.new, grid.adv, clip)
            fit = _fit((ratio_name, name), shape, grid, clip)
            if fit:
                fits.append(fit)
    return fits


def _clips(grid: Grid, unit: float, given: tuple[bool, bool]) -> list[Clip]:
    """The bounds given; constants written into the loss, read off where the term saturates."""
    up, down = grid.adv == 1, grid.adv == -1
    good, bad = grid.value[up] / unit, grid.value[down] / unit
    steep, steep_bad = grid.slope[up] / unit, grid.slope[down] / unit
    tops = (good.max(), -bad.min(), steep.max(), -steep_bad.min())
    bottoms = (-bad.max(), good.min(), -steep_bad.max(), steep.min())
    highs = {rounded(x - 1) for x in tops if x > 1}
    lows = {rounded(1 - x) if x > _UNBOUNDED else 1.0 for x in bottoms if 0 < x < 1}
    low = [EPS] if given[0] else sorted(lows) or [EPS]
    high = [EPS] if given[1] else sorted(highs) or [EPS]
    caps = dict.fromkeys([rounded(-bad.min()), rounded(-steep_bad.min())])
    gates = [_gate(float(good.max())), _gate(float(-bad.min()))]
    bounds = [
        Clip(a, b, cap if cap > 1.05 * (1 + b) else _NO_CAP, "delta", gates[0], gates[1])
        for a, b, cap in product(low, high, caps)
    ]
    logs = [Clip(EPS, EPS, _NO_CAP, "log")] if all(given) else []
    return [*bounds, *logs, Clip(low[0], high[0], _NO_CAP)]  # the last has the usual gates


def _gate(top: float) -> float:
    """The τ whose soft gate (4/τ)·σ(τ(ρ − 1)) reaches this value at the grid's largest ratio."""
    reach = float(np.exp(max(step for _, step in FAR))) - 1
    low, high = 0.05, 60.0
    for _ in range(60):
        middle = (low + high) / 2
        value = 4 / middle / (1 + np.exp(-middle * reach))
        low, high = (middle, high) if value > top else (low, middle)
    return rounded(low)


def _clip_coordinates(
    term: Fit, seen: LossObservation, takes_clip: tuple[bool, bool]
) -> dict[str, str | float]:
    if term.names[1] in ("unclipped", "log-prob", "tapered", "gamma-weight"):
        return {}
    moves = any(takes_clip) and clip_matters(seen)
    found: dict[str, str | float] = {
        "clip_low": term.clip.low or 0.0,
        "clip_high": term.clip.high or 0.0,
    }
    if term.names[1] in _CAPPED:
        found["cap"] = term.clip.cap
    if term.names[1] == "soft-gate":
        return {
            "temperature_positive": term.clip.positive_temperature,
            "temperature_negative": term.clip.negative_temperature,
        }
    if term.clip.convention != "delta":
        found["clip_convention"] = term.clip.convention
    return found | {"clip_from": "arguments" if moves else "constant"}


def clip_matters(seen: LossObservation) -> bool:
    """Whether another clip range changes the single-token term anywhere."""
    other = seen.other_clip
    return other is not None and _relative(other.value, seen.surrogate.value) > TOLERANCE


def _divergence_coordinates(
    seen: LossObservation, takes_beta: bool, scale: float
) -> dict[str, str | float]:
    grid = seen.divergence
    if grid is None or max(np.abs(grid.value).max(), np.abs(grid.slope).max()) < _ZERO:
        return {"divergence": "none"}
    fits = [
        fit
        for name, formula in values("divergence").items()
        if (fit := _fit((name,), formula(grid.new, grid.ref), grid, Clip()))
    ]
    best = _best(fits)
    if best is None:
        return {}
    follows = takes_beta and (seen.other_beta is None or abs(seen.other_beta - 2) < 1e-3)
    return {
        "divergence": best.names[0],
        "divergence_weight": rounded(best.factor / scale),
        "beta_from": "arguments" if follows else "constant",
    }


def _drift_coordinates(grid: Grid, scale: float) -> dict[str, str | float]:
    """A penalty on the move from the old policy: DRO, or a divergence to the sampler."""
    if np.abs(grid.value).max() < _ZERO:
        return {}
    fits = [
        fit
        for name, formula in values("divergence").items()
        if (fit := _fit((name,), formula(grid.new, grid.old), grid, Clip()))
    ]
    best = _best(fits)
    if best is None:
        return {}
    return {"drift": best.names[0], "drift_weight": rounded(best.factor / scale)}


def _aggregation(seen: LossObservation) -> str | None:
    """The published or faulty slot weights that fit both widths."""
    if abs(seen.unit) < _ZERO:
        return None
    return next(_fitting([(w.surrogate / seen.unit, w) for w in (seen.weights, seen.wider)]), None)


def _fitting(measured: list[tuple[Array, Weights]]) -> Iterator[str]:
    """The aggregations whose weights of real slots are the measured ones."""
    for name, formula in values("aggregation").items():
        if all(_relative(_real(m, w), _real(formula(w.mask), w)) < TOLERANCE for m, w in measured):
            yield name


def _divergence_aggregation(point: Point, seen: LossObservation) -> dict[str, str | float]:
    """The slot weights of the divergence, where they are not those of the surrogate."""
    name = str(point.get("divergence", "none"))
    if name == "none":
        return {}
    at = seen.weights.at
    slope = values("divergence")[name](np.array([at[0]]), np.array([at[1]]))[1][0]
    unit = float(point["factor"]) * float(point["divergence_weight"]) * slope
    if abs(unit) < _ZERO:
        return {}
    fitting = list(_fitting([(w.divergence / unit, w) for w in (seen.weights, seen.wider)]))
    if (
        not fitting
        or point["aggregation"] in fitting
        or not is_published("aggregation", fitting[0])
    ):
        return {}
    return {"divergence_aggregation": fitting[0]}


def _real(weights: Array, of: Weights) -> Array:
    return np.asarray(weights[of.mask > 0])


def _padding(weights: Array, seen: LossObservation) -> str:
    return "counted" if padding_weight(weights, seen.weights.mask) > TOLERANCE else "masked"


def padding_weight(weights: Array, mask: Array) -> float:
    """The largest weight of a padded slot, relative to the largest of a real one."""
    size = max(float(np.abs(weights[mask > 0]).max()), 1e-12)
    return float(np.abs(weights[mask == 0]).max(initial=0.0)) / size


def _settle_level(point: dict[str, str | float], seen: LossObservation) -> None:
    """Decide whether the ratio belongs to the token or to the whole row."""
    fitting = [
        changes
        for changes in _levels(point)
        if _reproduces({**point, **changes}, seen.pair, seen.apart)
    ]
    whole = [c for c in fitting if residual({**point, **c}, seen) <= TOLERANCE]
    by_token = [c for c in fitting if c["level"] == "token"]
    for changes in (whole or by_token)[:1]:
        point |= changes


def _reproduces(point: Point, *asked: tuple[Batch, Answer]) -> bool:
    return all(distance(evaluate(point, batch), got) <= TOLERANCE for batch, got in asked)


def _settle_weighting(point: dict[str, str | float], seen: LossObservation) -> None:
    """A divergence weighted by the ratio and one weighted by the score agree at ratio 1."""
    for name, alias in RATIO_WEIGHTED.items():
        trial = {**point, "divergence": name}
        if point.get("divergence") == alias and residual(point, seen) > TOLERANCE:
            if residual(trial, seen) < TOLERANCE:
                point["divergence"] = name


def _levels(point: Point) -> Iterator[Point]:
    """Levels to try, each with the coordinates that go with it.

    A product over the row multiplies each slot's gradient by the row's length, so there the
    weights that were measured may be those of another aggregation. A cap of the ratio is a dual
    clip unless the clip range reaches beyond it, which no single token showed. The geometric
    mean of clipped ratios is, for one token, a clip in log space, or with constants any clip.
    """
    if point.get("clip_convention") == "log":
        yield {"level": "geometric-of-clipped", "surrogate": "unclipped"}
    yield from ({"level": "token"}, {"level": "sequence-mean"})
    products = [{"level": "sequence-sum", "aggregation": name} for name in values("aggregation")]
    yield from products
    if point.get("divergence", "none") != "none" and "divergence_aggregation" not in point:
        own = {"divergence_aggregation": point["aggregation"]}  # it has no product: as measured
        yield from ({**changes, **own} for changes in products)
    if point["surrogate"] == "dual-clip":
        yield {"level": "token", "surrogate": "two-sided"}
    if point["surrogate"] == "min-clip" and point.get("clip_from") == "constant":
        yield from _in_logs(point)


def _in_logs(point: Point) -> Iterator[Point]:
    """The same clip range as bounds of log ρ."""
    low, high = float(point["clip_low"]), float(point["clip_high"])
    if low < 1:
        yield {
            "level": "geometric-of-clipped",
            "surrogate": "unclipped",
            "clip_convention": "log",
            "clip_low": rounded(-log1p(-low)),
            "clip_high": rounded(log1p(high)),
        }
