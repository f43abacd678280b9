"""The losses that a recorded loss is compared with: a·Σ w·s + b·Σ w·d over the axes of the space.

s is the surrogate, d the divergence, w the weight of a slot. Published values and faulty ones
alike; a and b are fitted. Shapes: B rows, T slots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from rlproof.faults.registry import catalogue
from rlproof.judge.axes import values
from rlproof.space import scores
from rlproof.space.aggregation import Scope
from rlproof.space.aggregation import slot_weights as weights_of
from rlproof.space.published import OBJECTIVES
from rlproof.space.ratios import ratio_of, sided_log_bounds
from rlproof.space.surrogates import Clip
from rlproof.watch.facts import Facts
from rlproof.watch.seen import Array, StepSeen

_UNCLIPPED = ("unclipped", "soft-gate", "log-prob", "tapered", "gamma-weight")
_USUAL = (Clip(0.2, 0.2), Clip(0.2, 0.28), Clip(0.1, 0.1), Clip(0.3, 0.3))
_LEVELS = {
    "sequence-mean": ("unclipped", "min-clip", "max-clip", "cispo"),
    "sequence-sum": ("unclipped", "min-clip", "cispo", "gamma-weight", "tapered"),
}
_OF_FAULTY = ("unclipped", "min-clip", "dual-clip", "max-clip", "clip-only", "min-of-ratios")
AGGREGATIONS = ("token-mean", "sequence-mean", "prompt-mean", "sequence-sum", "sum", "all-slots")
DIVERGENCES = (
    "none", "k3", "k2", "absolute", "k1", "k3-straight-through", "k1-straight-through",
    "k3-ratio-weighted", "k3-swapped", "k3-stopped",
)  # fmt: skip
"""How an estimator is differentiated shows in a gradient only; the plain one wins a tie."""
_WEIGHTED = "-ratio-weighted"
"""Multiplied by the token ratio, as TRL does from 1.10 on (DeepSeek-V3.2, arXiv:2512.02556)."""
Slopes = Callable[[Array], Array]


@dataclass(frozen=True, slots=True)
class Term:
    """One surrogate: its ratio, level and clip bounds."""

    ratio: str
    level: str
    surrogate: str
    clip: Clip


@dataclass(frozen=True, slots=True)
class Weighting:
    """How slots are weighed, and whether padding is."""

    aggregation: str
    counted: bool


@cache
def codes() -> dict[tuple[str, str], tuple[str, ...]]:
    """The faults of a faulty value of an axis: several where they give the same values."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for fault in catalogue().values():
        for plant in fault.plants:
            key = (plant.axis, plant.value)
            found[key] = (*found.get(key, ()), fault.code)
    return found


def terms(facts: Facts) -> list[Term]:
    """Published ones first, so that they win a tie."""
    clips = _clips(facts)
    found = [*_of_tokens("token", tuple(scores.ALL), clips)]
    found += _of_tokens("detached", ("unclipped",), clips)
    for level, surrogates in _LEVELS.items():
        for name in surrogates:
            found += [Term("token", level, name, c) for c in _for(name, clips)]
    logs = [Clip(c.low, c.high, convention="log") for c in (Clip(0.4, 0.4), *clips) if c.low]
    found += [Term("token", "geometric-of-clipped", "unclipped", c) for c in dict.fromkeys(logs)]
    faulty = tuple(name for name in values("surrogate") if name not in scores.ALL)
    found += _of_tokens("token", faulty, clips)
    found += _of_tokens("stopped", ("unclipped", "min-clip"), clips)
    for ratio in ("log-prob-ratio", "log-difference", "inverted"):
        found += _of_tokens(ratio, _OF_FAULTY, clips)
    return found


def _clips(facts: Facts) -> list[Clip]:
    """The declared bounds, or the usual ones; those of a declared objective come first."""
    if facts.clip_low is not None or facts.clip_high is not None:
        low = facts.clip_low if facts.clip_low is not None else facts.clip_high
        high = facts.clip_high if facts.clip_high is not None else facts.clip_low
        return [Clip(low, high)]
    own = [OBJECTIVES[facts.objective].objective.clip] if facts.objective else []
    far = [Clip(3e-4, 4e-4), Clip(None, 4.0)]
    return list(dict.fromkeys([*own, *_USUAL, *far]))


def _for(surrogate: str, clips: list[Clip]) -> list[Clip]:
    return clips[:1] if surrogate in _UNCLIPPED else clips


def _of_tokens(ratio: str, surrogates: tuple[str, ...], clips: list[Clip]) -> Iterator[Term]:
    for name in surrogates:
        yield from (Term(ratio, "token", name, clip) for clip in _for(name, clips))


WEIGHTINGS = [Weighting(name, counted) for counted in (False, True) for name in AGGREGATIONS]
"""Every aggregation, over real slots and then over all of them."""


def slot_weights(step: StepSeen, mask: Array) -> Array:
    """The weights of every weighting, (W, B, T); NaN where the groups are needed and unknown."""
    found = []
    for how in WEIGHTINGS:
        try:
            if how.aggregation == "prompt-mean":
                if step.groups is None:
                    raise ValueError("prompt-mean needs the groups")
                weights = weights_of(mask, "prompt-mean", Scope(), step.groups)
            elif how.aggregation == "token-mean" and step.declared.denominator:
                weights = mask / step.declared.denominator
            else:
                weights = values("aggregation")[how.aggregation](mask)
            if how.counted:
                weights = np.broadcast_to(weights.max(1, keepdims=True), mask.shape)
        except ValueError:
            weights = np.full(mask.shape, np.nan)
        found.append(weights)
    return np.array(found)


@dataclass(frozen=True, slots=True)
class Inputs:
    """Arrays of one step with every slot finite."""

    new: Array
    old: Array
    ref: Array | None
    adv: Array
    mask: Array
    blind: bool
    """Whether padding held numbers that nothing can be computed from."""
    entropy: Array | None = None
    """As recorded, padding too; None where a real token has none, or one beyond all measure."""


def inputs(step: StepSeen) -> Inputs | None:
    """What a loss is computed from, or None where something is missing or not finite."""
    new, adv, mask = step.get("new_logps"), step.get("advantages"), step.mask
    if new is None or adv is None or mask is None or not mask.any():
        return None
    old, ref = step.get("old_logps"), step.get("ref_logps")
    old = new if old is None else old
    adv = np.broadcast_to(adv if adv.ndim == 2 else adv[:, None], new.shape)
    arrays = [new, old, adv, *([ref] if ref is not None else [])]
    if not all(np.isfinite(a[mask]).all() for a in arrays):
        return None
    blind = not all(np.isfinite(a).all() for a in arrays)
    new, old, adv = (np.where(np.isfinite(a), a, 0.0) for a in (new, old, adv))
    ref = None if ref is None else np.where(np.isfinite(ref), ref, 0.0)
    entropy = step.get("entropy")
    if entropy is not None and not (np.abs(entropy[mask]) < 1e100).all():
        entropy = None
    return Inputs(new, old, ref, adv, mask.astype(float), blind, entropy)


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A surrogate on one step: its values, its slopes, and the way back to the log-probs."""

    value: NDArray[np.float64]
    slope: NDArray[np.float64]
    pull: Slopes | None
    """None where the slope is that of each slot itself."""


def surrogate(term: Term, given: Inputs) -> Evaluated:
    """One term, (B, T)."""
    new, old, adv, clip = given.new, given.old, given.adv, term.clip
    formula = values("surrogate")[term.surrogate]
    with np.errstate(all="ignore"):
        if term.level == "token":
            ratio, slope = values("ratio")[term.ratio](new, old)
            value, slopes = formula(ratio, slope, new, adv, clip)
            return Evaluated(value, slopes, None)
        bounds = sided_log_bounds(clip.bounds, adv)
        gap = np.where(given.mask > 0, new - old, 0.0)
        shared = ratio_of(gap, given.mask, term.level, bounds=bounds)
        value, slopes = formula(shared.value, shared.value, new, adv, clip)
    return Evaluated(value, slopes, None if term.surrogate in scores.PUBLISHED else shared.pull)


def divergence(name: str, given: Inputs) -> tuple[Array, Array]:
    """Value and slope of a divergence, (B, T); zeros for none, NaN without a reference."""
    if name == "none":
        return np.zeros_like(given.new), np.zeros_like(given.new)
    if given.ref is None:
        return np.full_like(given.new, np.nan), np.full_like(given.new, np.nan)
    estimator = name.removesuffix(_WEIGHTED)
    with np.errstate(all="ignore"):
        value, slope = values("divergence")[estimator](given.new, given.ref)
        if estimator != name:  # d·ρ, whose slope is (d + d′)·ρ
            ratio = np.exp(given.new - given.old)
            value, slope = value * ratio, (value + slope) * ratio
    return value, slope
