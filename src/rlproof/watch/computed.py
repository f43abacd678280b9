"""What the recorded losses are, in words: fits by their coordinates and recipes."""

from __future__ import annotations

from math import isnan

from rlproof.faults.model import rounded
from rlproof.space.objective import Objective
from rlproof.space.published import OBJECTIVES
from rlproof.watch.fit import Fit
from rlproof.watch.pointfit import Named

_CONSTANT = {"constant": "sum", "constant-per-sequence": "sequence-sum", "per-token": "sum"}
_CLIPPED = ("min-clip", "dual-clip", "two-sided", "masked-ratio", "cispo", "max-clip", "clip-only")


def words(fit: Fit) -> str:
    """`min-clip 0.2 of the token ratio, k3 · 0.04, token-mean`."""
    term, clip = fit.term, fit.term.clip
    bounds = ""
    if term.surrogate in _CLIPPED or clip.convention == "log":
        low, high = clip.low, clip.high
        bounds = f" {high:g}" if low == high else f" {low or 0:g}/{high or 0:g}"
    ratio = term.level if term.level != "token" else term.ratio
    ratio = {"token": "token ratio", "detached": "ratio of 1"}.get(ratio, f"{ratio} ratio")
    pull = ""
    if fit.divergence != "none":
        known = abs(fit.weight) > fit.certain
        weight = f"{rounded(beta(fit), 3):g}" if known else "a weight too small to tell"
        pull = f", {fit.divergence} · {weight}"
    padding = " with padding counted" if fit.weighting.counted else ""
    sign = "±" if isnan(fit.factor) else "+" if fit.factor > 0 else "−"
    scaled = not isnan(fit.factor) and abs(abs(fit.factor) - 1) >= 1e-3
    scale = "" if not scaled else f" × {rounded(abs(fit.factor), 4):g}"
    return (
        f"{sign}{term.surrogate}{bounds} of the {ratio}{pull}{_bonus(fit)}, "
        f"{fit.weighting.aggregation}{padding}{scale}"
    )


def beta(fit: Fit) -> float:
    """The weight of the divergence, in units of the surrogate's."""
    return fit.scaled(fit.weight)


def coefficient(fit: Fit) -> float:
    """c_H, the weight of the entropy bonus, negative if minimised; in the units of `beta`."""
    if fit.bonus is None:
        return 0.0
    return -fit.entropy if of_unknown_scale(fit) else -fit.scaled(fit.entropy)


def of_unknown_scale(fit: Fit) -> bool:
    """Whether the entropy is a mean and the surrogate a sum over an unknown constant."""
    of_mean = fit.bonus is not None and fit.bonus.weights == "token-mean"
    return of_mean and fit.weighting.aggregation in ("sum", "sequence-sum")


def _bonus(fit: Fit) -> str:
    if fit.bonus is None:
        return ""
    mean = "the token-mean " if fit.bonus.weights == "token-mean" else ""
    if abs(fit.entropy) <= fit.certain_entropy:
        return f", a weight of {mean}entropy too small to tell"
    weight = coefficient(fit)
    sign = "−" if weight > 0 else "+"
    lowered = "" if weight > 0 else ", which is minimised"
    return f" {sign} {rounded(abs(weight), 3):g} · {mean}entropy{lowered}"


def points(named: list[Named]) -> str:
    """`grpo, bnpo with its coefficients, and an entropy bonus of 0.01 in the loss`."""
    first = named[0]
    text = f"{', '.join(one.name for one in named)} with its coefficients"
    if first.bonus is not None and first.coefficient > 0:
        text += f", and an entropy bonus of {rounded(first.coefficient, 3):g}"
    elif first.bonus is not None:
        text += f", and {rounded(-first.coefficient, 3):g} · entropy, which is minimised"
    if first.factor != 1:
        text += f", divided by the {round(1 / first.factor)} batches that are accumulated"
    return text


def recipes(fits: list[Fit]) -> list[str]:
    """The published objectives whose surrogate, ratio, clip, divergence and mean these are."""
    return [
        name
        for name, published in OBJECTIVES.items()
        if any(is_of(fit, published.objective) for fit in fits)
    ]


def is_of(fit: Fit, objective: Objective) -> bool:
    """Whether a fit without faults is this objective, whatever its coefficients are."""
    kl = objective.divergence
    if fit.faults or objective.mismatch.action != "none" or objective.rejection.action != "none":
        return False
    aggregation = _CONSTANT.get(objective.aggregation, objective.aggregation)
    level = objective.ratio.removesuffix("-token")
    estimator = kl.estimator if kl.place == "loss" and kl.target == "reference" else "none"
    clips = fit.term.clip == objective.clip or fit.term.surrogate not in _CLIPPED
    return (
        fit.term.level == level
        and fit.term.surrogate == objective.surrogate
        and clips
        and fit.weighting.aggregation == aggregation
        and fit.divergence in (estimator, "none")
    )
