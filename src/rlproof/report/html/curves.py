"""The numbers behind the charts of a check: what a point of the space computes, and should.

The curves are those of the *identified* formulas; identification accepts a formula only if it
reproduces what the script answered. Shapes: P groups, G members, B rows, T slots.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from math import isfinite, log

import numpy as np

from rlproof.faults.registry import catalogue
from rlproof.faults.seen import Answer, Batch
from rlproof.judge.axes import values
from rlproof.judge.evaluate import clip_of, evaluate, slot_weights
from rlproof.report.html.blocks import Block, Chart, NumberTable, Series
from rlproof.space.advantages import BASELINES
from rlproof.space.recipes import RECIPES

Point = Mapping[str, str | float]
_OLD = 0.2  # π_old; π_new goes up to 0.8
_WIDEST = 4.0
_STEPS = 40
_LENGTHS = (1, 2, 4, 8)
_MEMBERS = 8
_DIRECTION = {"SUR005": "surrogate_weight", "KLD001": "divergence_weight"}
_MEANT = {"surrogate_weight": -1.0, "divergence_weight": 1.0}
_IDENTIFIED = "Drawn from the identified formula, which reproduces what the script answered."


def intended(point: Point, codes: Collection[str], declared: str | None) -> Point:
    """The point with its faults repaired and, where a recipe is declared, that recipe's values."""
    meant = dict(point)
    for code in codes:
        for plant in catalogue()[code].plants:
            if meant.get(plant.axis) == plant.value:
                meant[plant.axis] = plant.instead
        if (axis := _DIRECTION.get(code)) in meant and axis:
            meant[axis] = _MEANT[axis] * abs(float(meant[axis]))
    for axis, allowed in RECIPES[declared].coordinates.items() if declared else ():
        if axis in meant and meant[axis] not in allowed:
            meant[axis] = allowed[0]
    return meant


def charts(point: Point, codes: Collection[str], declared: str | None) -> Iterator[Block]:
    """Everything worth drawing about one function."""
    meant = intended(point, codes, declared)
    name = f"declared: {declared}" if declared else "repaired"
    if "baseline" in point:
        yield from _advantages(point, meant, name)
    if {"ratio", "surrogate", "surrogate_weight"} <= set(point):
        yield from _surrogates(point, meant, name)
    if point.get("divergence", "none") != "none" and "ratio" in point and "surrogate" in point:
        yield _divergence(point, meant, name)
    if "aggregation" in point:
        yield _weights(point, meant, name)


def _pairs(point: Point, meant: Point, name: str) -> list[tuple[str, Point, bool]]:
    """What is drawn solid and, if it differs, dashed."""
    return [("as written", point, False), *([(name, meant, True)] if meant != point else [])]


def _surrogates(point: Point, meant: Point, name: str) -> Iterator[Chart]:
    axes = ("ratio", "surrogate", "surrogate_weight", "level")
    only = {**point, "divergence": "none"}
    better = {**only, **{axis: meant[axis] for axis in axes if axis in meant}}
    ratios = _ratios(point)
    sign = -1.0 if float(meant["surrogate_weight"]) < 0 else 1.0
    reads: tuple[tuple[str, str, Callable[[Answer], float]], ...] = (
        ("Surrogate of one token", "value", lambda answer: answer.value),
        ("Its slope: how hard a token is pushed", "∂/∂log π_new", lambda a: a.gradient[0][0]),
    )
    for title, label, read in reads:
        series = [
            Series(f"{who}, A = {adv:+g}", _curve(which, ratios, adv, sign, read), dashed, colour)
            for who, which, dashed in _pairs(only, better, name)
            for adv, colour in ((1.0, 0), (-1.0, 1))
        ]
        note = f"π_old = {_OLD:g}. {_IDENTIFIED}"
        yield Chart(title, "ratio π_new/π_old", label, ratios, series, note)


def _ratios(point: Point) -> list[float]:
    """A grid that shows every bound, and the bounds themselves."""
    clip = clip_of(point, _token(0.0, 0.0, 1.0))
    low, high = clip.bounds
    cap = clip.cap if "cap" in point else 0.0
    top = max([2.0, *(1.25 * x for x in (high, cap) if isfinite(x))])
    top = min(_WIDEST, round(top, 1))
    grid = {round(top * i / _STEPS, 4) for i in range(1, _STEPS + 1)}
    return sorted(grid | {round(x, 6) for x in (low, high, cap) if 0 < x <= top})


def _token(new: float, old: float, adv: float) -> Batch:
    rows = [[old]]
    return Batch([[new]], rows, rows, [adv], [[1]], low=None, high=None, beta=None)


def _curve(
    point: Point, ratios: list[float], adv: float, sign: float, read: Callable[[Answer], float]
) -> list[float | None]:
    """sign·(value or slope) of the term of one token, along the ratio."""
    old = log(_OLD)
    answers = (evaluate(point, _token(old + log(ratio), old, adv)) for ratio in ratios)
    return [_finite(sign * read(answer)) for answer in answers]


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


def _divergence(point: Point, meant: Point, name: str) -> Chart:
    gaps = [round(-2 + i / 10, 1) for i in range(41)]
    better = {**point, **{a: meant[a] for a in ("divergence", "divergence_weight")}}
    series = []
    for who, which, dashed in _pairs(point, better, name):
        answers = [evaluate(which, _away(gap)) for gap in gaps]
        value = [_finite(answer.value) for answer in answers]
        slope = [_finite(answer.gradient[0][0]) for answer in answers]
        series += [
            Series(f"{who}, value", value, dashed, 2),
            Series(f"{who}, slope", slope, dashed, 3),
        ]
    beta = " at β = 1" if point.get("beta_from") == "arguments" else ""
    return Chart(
        f"Divergence term of one token{beta}", "log π_new − log π_ref", "value, ∂/∂log π_new",
        gaps, series, _IDENTIFIED,
    )  # fmt: skip


def _away(gap: float) -> Batch:
    """One token without an advantage, this far from the reference."""
    ref = -2.5
    new = [[ref + gap]]
    return Batch(new, new, [[ref]], [0.0], [[1]], low=None, high=None, beta=1.0)


def _weights(point: Point, meant: Point, name: str) -> NumberTable:
    width = max(_LENGTHS)
    mask_BT = np.array([[float(t < length) for t in range(width)] for length in _LENGTHS])
    better = {**point, **{a: meant[a] for a in ("aggregation", "padding") if a in meant}}
    columns, found = ["Real tokens of the row"], []
    for who, which, _ in _pairs(point, better, name):
        weights_BT = slot_weights(which, mask_BT) * mask_BT
        columns += [f"One token, {who}", f"Whole row, {who}"]
        found += [weights_BT.max(1), weights_BT.sum(1)]
    rows = [[float(n), *(float(w[i]) for w in found)] for i, n in enumerate(_LENGTHS)]
    return NumberTable(
        f"Weight of a token by the length of its row, in a batch of {len(_LENGTHS)} rows padded "
        f"to {width} slots", columns, rows,
    )  # fmt: skip


def _advantages(point: Point, meant: Point, name: str) -> Iterator[Chart]:
    """Advantages of right and wrong completions, by how many of a group are right."""
    series = []
    for who, which, dashed in _pairs(point, meant, name):
        found = [_of_group(which, right) for right in range(_MEMBERS + 1)]
        if not any(value is not None for pair in found for value in pair):
            return
        series += [
            Series(f"{who}, right", [pair[0] for pair in found], dashed, 0),
            Series(f"{who}, wrong", [pair[1] for pair in found], dashed, 1),
        ]
    note = f"Rewards 1 and 0. {_IDENTIFIED}"
    if any(str(point.get(axis, "")).startswith("batch") for axis in ("baseline", "scale")):
        note = f"As if this group were the whole batch. {note}"
    yield Chart(
        f"Advantage in a group of {_MEMBERS}", "how many of the group are right", "advantage",
        [float(k) for k in range(_MEMBERS + 1)], series, note,
    )  # fmt: skip


def _of_group(point: Point, right: int) -> tuple[float | None, float | None]:
    """The advantages of a right and of a wrong completion; None where there is none."""
    rewards_PG = np.array([[1.0] * right + [0.0] * (_MEMBERS - right)])
    baseline = BASELINES.get(str(point["baseline"]))
    scale = values("scale").get(str(point.get("scale", "none")))
    if baseline is None or scale is None:
        return None, None
    spread = _stabilised(point, np.asarray(scale(rewards_PG)))
    with np.errstate(all="ignore"):
        found = (rewards_PG - baseline(rewards_PG)) / spread + 0.0 * rewards_PG
    found = found * float(point.get("factor", 1.0)) * (-1 if point.get("sign") else 1)
    first, last = _finite(float(found[0, 0])), _finite(float(found[0, -1]))
    return (first if right else None), (last if right < _MEMBERS else None)


def _stabilised(point: Point, spread: np.ndarray) -> np.ndarray:
    eps = float(point.get("eps", 0.0))
    match point.get("eps_place"):
        case "std + eps":
            return spread + eps
        case "sqrt(var + eps)":
            return np.asarray(np.sqrt(spread**2 + eps))
        case "sqrt(max(var, eps))":
            return np.asarray(np.sqrt(np.maximum(spread**2, eps)))
    return spread
