"""Per-token estimators of the divergence from the reference policy: value and slope.

Every estimator takes log π_new and log π_ref (nats) and returns `(d, ∂d/∂ log π_new)`. Names
follow Schulman, "Approximating KL Divergence" (joschu.net/blog/kl-approx.html); in all of
them the tokens are sampled from π_new, so the value estimates KL(π_new ‖ π_ref).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rlproof.space.arrays import Array, Pair, namespace, stop_gradient, where

DivergenceFormula = Callable[[Array, Array], Pair]
GRADIENTS = (
    "naive", "straight-through-k2", "ratio-weighted", "score-weighted", "level-weighted"
)  # fmt: skip
"""How an estimator is differentiated: as it is; with the slope of k2; multiplied by the
differentiable token ratio; multiplied by exp(x − stop_gradient(x)); multiplied by the
differentiable ratio at the level of the objective, such as that of the row. The third
and the fourth make the expected gradient of a token that of KL(π_new ‖ π_ref)."""
PLACES = ("none", "loss", "reward", "token-reward", "advantage")
TARGETS = ("reference", "sampler", "old")


@dataclass(frozen=True, slots=True)
class Divergence:
    """The divergence coordinates: which policy is held close to, how, and where it enters."""

    place: str = "none"
    """`none`; in the `loss` of each token; summed over the row in its `reward`; in the
    `token-reward`, whose return-to-go is the advantage; or in the `advantage` of each token,
    centred over the batch."""
    target: str = "reference"
    """Held close to the `reference`, to the `sampler`, or to the `old` policy."""
    estimator: str = "k3"
    """d: one of k1, k2, k3, absolute."""
    gradient: str = "naive"
    """How d is differentiated: one of `GRADIENTS`."""
    coefficient: float = 0.04
    """β."""
    clamp_in: float | None = None
    """Bound on the log-ratio before the estimator."""
    clamp_out: float | None = None
    """Bound on the estimate."""
    aggregation: str = "same"
    """Slot weights of the divergence, where they differ from those of the surrogate."""


def k1(new: Array, ref: Array) -> Pair:
    """d = log π_new − log π_ref. Unbiased; as a loss its expected on-policy gradient is 0."""
    return new - ref, namespace(new).ones_like(new)


def k2(new: Array, ref: Array) -> Pair:
    """d = (log π_new − log π_ref)² / 2, whose on-policy gradient is that of KL(π_new ‖ π_ref)."""
    return (new - ref) ** 2 / 2, new - ref


def k3(new: Array, ref: Array) -> Pair:
    """d = exp(log π_ref − log π_new) − (log π_ref − log π_new) − 1 ≥ 0.

    Unbiased in value; as a loss its on-policy gradient is that of KL(π_ref ‖ π_new).
    """
    xp = namespace(new)
    log_ratio = ref - new
    return xp.exp(log_ratio) - log_ratio - 1, 1 - xp.exp(log_ratio)


def absolute(new: Array, ref: Array) -> Pair:
    """d = |log π_new − log π_ref|."""
    xp = namespace(new)
    return xp.abs(new - ref), xp.sign(new - ref)


def straight_through(estimator: DivergenceFormula) -> DivergenceFormula:
    """The value of an estimator with the slope of k2, log π_new − log π_ref."""

    def with_slope_of_k2(new: Array, ref: Array) -> Pair:
        value, gap = estimator(new, ref)[0], new - ref
        return stop_gradient(value) + (gap**2 - stop_gradient(gap**2)) / 2, gap

    return with_slope_of_k2


def score_weighted(estimator: DivergenceFormula) -> DivergenceFormula:
    """d·exp(x − stop_gradient(x)), whose slope is d′ + d.

    For k3 that is log π_new − log π_ref: the same function as `straight_through(k3)`.
    """

    def weighted(new: Array, ref: Array) -> Pair:
        value, slope = estimator(new, ref)
        return value * namespace(new).exp(new - stop_gradient(new)), slope + value

    return weighted


def k1_in_reward(new: Array, ref: Array) -> Pair:
    """d·log π_new with d = k1 held constant: what a penalty in the reward adds to the score.

    The slope is that of k2. Taken off token rewards since Ziegler et al., arXiv:1909.08593, eq. 2.
    """
    gap = new - ref
    return stop_gradient(gap) * new, gap


PUBLISHED: dict[str, DivergenceFormula] = {
    "k3": k3,
    "k2": k2,
    "absolute": absolute,
    "k3-straight-through": straight_through(k3),
    "k1-score-weighted": score_weighted(k1),
    "k1-straight-through": straight_through(k1),
    "absolute-straight-through": straight_through(absolute),
}
IN_COEFFICIENT: dict[str, DivergenceFormula] = {"k1-in-reward": k1_in_reward}
"""Penalties that stand in the coefficient of log π_new, where they act as a reward."""
ESTIMATORS: dict[str, DivergenceFormula] = {"k1": k1, "k2": k2, "k3": k3, "absolute": absolute}
"""The estimators of an `Objective`; its gradient mode is a coordinate of its own."""


def divergence(
    new: Array,
    target: Array,
    estimator: str,
    gradient: str = "naive",
    ratio: Array | None = None,
    clamp_in: float | None = None,
    clamp_out: float | None = None,
) -> Pair:
    """An estimator with its gradient mode and clamps: value and slope.

    Args:
        new: log π_new.
        target: log-probabilities of the policy that is held close to.
        estimator: a key of `ESTIMATORS`.
        gradient: one of `GRADIENTS`.
        ratio: the token ratio π_new/π_old, for `ratio-weighted`.
        clamp_in: bound on |log π_new − log π_target| before the estimator.
        clamp_out: bound on the estimate.
    """
    if clamp_in is not None:
        gap = new - target
        inside = (gap >= -clamp_in) & (gap <= clamp_in)
        bounded = target + namespace(new).clip(gap, -clamp_in, clamp_in)
        new_seen, through = bounded, where(inside, namespace(new).ones_like(new), 0.0)
    else:
        new_seen, through = new, namespace(new).ones_like(new)
    value, slope = ESTIMATORS[estimator](new_seen, target)
    slope = slope * through
    if clamp_out is not None:
        inside = (value >= -clamp_out) & (value <= clamp_out)
        value = namespace(new).clip(value, -clamp_out, clamp_out)
        slope = where(inside, slope, 0.0)
    return _differentiated(new, target, value, slope, gradient, ratio)


def _differentiated(
    new: Array, target: Array, value: Array, slope: Array, gradient: str, ratio: Array | None
) -> Pair:
    if gradient == "straight-through-k2":
        gap = new - target
        return stop_gradient(value) + (gap**2 - stop_gradient(gap**2)) / 2, gap
    if gradient == "score-weighted":
        weight = namespace(new).exp(new - stop_gradient(new))
        return value * weight, slope + value
    if gradient == "ratio-weighted" and ratio is not None:
        return value * ratio, (slope + value) * ratio
    return value, slope
