"""An objective as a point of the space: advantages, loss, and its closed-form gradient.

    L = Σ_bt w_bt · (−m_bt · s(ρ_bt, A_b) + β · d_bt) − c_H · Σ_bt w_bt · H_bt

with slot weights w from the aggregation, mismatch weights m, the surrogate s of the ratio ρ
and the advantage A, the divergence d and the entropy H. Shapes: B rows, T slots.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from rlproof.space import advantages as rewards_to_advantages
from rlproof.space.advantages import Advantage
from rlproof.space.aggregation import PUBLISHED as AGGREGATIONS
from rlproof.space.aggregation import Scope, slot_weights
from rlproof.space.arrays import Array, Pair, namespace, stop_gradient, where
from rlproof.space.divergences import ESTIMATORS, GRADIENTS, divergence
from rlproof.space.mismatch import ACTIONS, Mismatch, weights
from rlproof.space.mismatch import LEVELS as MISMATCH_LEVELS
from rlproof.space.ratios import LEVELS, Ratio, ratio_of, sided_log_bounds
from rlproof.space.surrogates import ALL as SURROGATES
from rlproof.space.surrogates import CONVENTIONS, Clip


class ObjectiveError(ValueError):
    """Coordinates that are unknown or contradict each other."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """The divergence coordinates: which policy is held close to, how, and where it enters."""

    place: str = "none"
    """`none`, or in the `loss` of each token, or in the `reward` before the advantages."""
    target: str = "reference"
    """Held close to the `reference`, or to the `sampler`."""
    estimator: str = "k3"
    """d: one of k1, k2, k3, absolute."""
    gradient: str = "naive"
    """How d is differentiated: one of `rlproof.space.divergences.GRADIENTS`."""
    coefficient: float = 0.04
    """β."""
    clamp_in: float | None = None
    """Bound on the log-ratio before the estimator."""
    clamp_out: float | None = None
    """Bound on the estimate."""
    aggregation: str = "same"
    """Slot weights of the divergence, where they differ from those of the surrogate."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What a loss is computed from: log-probs (B, T) in nats, advantages (B,) or (B, T).

    Padding may hold anything, NaN included.
    """

    new: Array
    advantages: Array
    mask: Array
    old: Array | None = None
    """Log-probs of the policy that the ratio compares with; None takes `new` as a constant."""
    ref: Array | None = None
    sampler: Array | None = None
    entropy: Array | None = None
    """Entropy of the policy at every slot (B, T), nats."""
    scope: Scope = field(default_factory=Scope)


@dataclass(frozen=True, slots=True)
class Objective:
    """One objective of the GRPO family. Frozen; `but` gives a neighbour.

    Raises:
        ObjectiveError: a coordinate has an unknown value, or two contradict each other.
    """

    name: str = "grpo"
    """For reports; no coordinate."""
    advantage: Advantage = field(default_factory=Advantage)
    """How rewards become advantages."""
    ratio: str = "token"
    """The level of ρ = exp(log π_new − log π_old): one of `rlproof.space.ratios.LEVELS`."""
    ratio_clamp: float | None = None
    """Bound on |log ρ|; beyond it no gradient flows."""
    surrogate: str = "min-clip"
    """s(ρ, A): a key of `rlproof.space.surrogates.ALL`."""
    clip: Clip = field(default_factory=Clip)
    """Bounds and constants of the surrogate."""
    mismatch: Mismatch = field(default_factory=Mismatch)
    """Correction for a sampler that is not the trainer."""
    divergence: Divergence = field(default_factory=Divergence)
    """Penalty for leaving the reference."""
    aggregation: str = "sequence-mean"
    """Slot weights: a key of `rlproof.space.aggregation.PUBLISHED`."""
    entropy: float = 0.0
    """c_H, the weight of an entropy bonus."""
    temperature: float = 1.0
    """Divides the logits, in sampling and in scoring alike."""

    def __post_init__(self) -> None:
        _check(self)

    def but(self, **changes: Any) -> Objective:
        """The same objective with some coordinates replaced."""
        return replace(self, **changes)

    def advantages(self, rewards: Array, groups: Any, lengths: Array | None = None) -> Array:
        """Advantages (N,) of rewards (N,); see `rlproof.space.advantages.advantages`."""
        return rewards_to_advantages.advantages(rewards, groups, self.advantage, lengths)

    def loss(self, batch: Batch) -> tuple[Array, dict[str, Array]]:
        """The loss, to be minimised, and what to log beside it (shares and nats)."""
        parts = _parts(self, batch)
        xp = namespace(parts.mask)
        value = xp.sum(parts.weights * -parts.correction * parts.surrogate[0])
        value = value + xp.sum(parts.pull_weights * parts.penalty[0])
        if self.entropy and batch.entropy is not None:
            value = value - self.entropy * xp.sum(parts.weights * _real(batch.entropy, parts.mask))
        return value, parts.metrics(self)

    def gradient(self, batch: Batch) -> Array:
        """∂L/∂log π_new (B, T), in closed form.

        The entropy bonus depends on the logits, not on these log-probs, and is not part of it.
        """
        parts = _parts(self, batch)
        through = parts.weights * -parts.correction * parts.surrogate[1]
        own = self.surrogate in _WITHOUT_RATIO
        gradient = through if own else parts.ratio.pull(through)
        return (gradient + parts.pull_weights * parts.penalty[1]) * parts.mask

    def coordinates(self) -> dict[str, Any]:
        """All coordinates, flat, by dotted name."""
        return dict(_flat(self))


_WITHOUT_RATIO = {"log-prob", "cispo"}  # their gradient goes through log π itself


@dataclass(frozen=True, slots=True)
class _Parts:
    """Everything a value or a gradient is put together from; all (B, T)."""

    mask: Array
    weights: Array
    pull_weights: Array
    correction: Array
    ratio: Ratio
    surrogate: Pair
    penalty: Pair

    def metrics(self, objective: Objective) -> dict[str, Array]:
        xp = namespace(self.mask)
        count = xp.sum(self.mask)
        count = where(count > 0, count, 1.0)
        low, high = objective.clip.bounds
        outside = (self.ratio.value < low) | (self.ratio.value > high)
        return {
            "clip_fraction": xp.sum(xp.astype(outside, self.mask.dtype) * self.mask) / count,
            "ratio_mean": xp.sum(self.ratio.value * self.mask) / count,
            "divergence_mean": xp.sum(self.penalty[0] * self.mask) / count,
            "tokens": xp.sum(self.mask),
        }


def _real(values: Array, mask: Array) -> Array:
    """The values on real tokens; 0 on padding, whatever stood there."""
    return where(mask > 0, values, 0.0)


def _parts(objective: Objective, batch: Batch) -> _Parts:
    xp = namespace(batch.new)
    mask = xp.astype(batch.mask, batch.new.dtype)
    new = _real(batch.new, mask)
    old = _real(batch.old, mask) if batch.old is not None else stop_gradient(new)
    adv = batch.advantages if batch.advantages.ndim == 2 else batch.advantages[:, None]
    adv = _real(adv + new * 0.0, mask)
    ratio = ratio_of(new - old, mask, objective.ratio, objective.ratio_clamp,
                     _log_bounds(objective, adv))  # fmt: skip
    formula = SURROGATES[objective.surrogate]
    value, slope = formula(ratio.value, ratio.value, new, adv, objective.clip)
    correction = _correction(objective, batch, old, mask)
    kl = objective.divergence
    name = objective.aggregation if kl.aggregation == "same" else kl.aggregation
    pull_weights = slot_weights(mask, name, batch.scope)
    return _Parts(
        mask=mask,
        weights=slot_weights(mask, objective.aggregation, batch.scope),
        pull_weights=kl.coefficient
        * pull_weights
        * (correction if objective.mismatch.on_divergence else 1.0),
        correction=correction,
        ratio=ratio,
        surrogate=(_real(value, mask), _real(slope, mask)),
        penalty=_penalty(objective, batch, new, old, mask),
    )


def _log_bounds(objective: Objective, adv: Array) -> Pair | None:
    """Only the geometric mean of clipped ratios clips before it averages."""
    if objective.ratio != "geometric-of-clipped":
        return None
    return sided_log_bounds(objective.clip.bounds, adv)


def _correction(objective: Objective, batch: Batch, old: Array, mask: Array) -> Array:
    if objective.mismatch.action == "none" or batch.sampler is None:
        return namespace(mask).ones_like(mask)
    return weights(old, _real(batch.sampler, mask), mask, objective.mismatch)


def _penalty(objective: Objective, batch: Batch, new: Array, old: Array, mask: Array) -> Pair:
    kl = objective.divergence
    target = batch.ref if kl.target == "reference" else batch.sampler
    if kl.place != "loss" or target is None or not kl.coefficient:
        return mask * 0.0, mask * 0.0
    ratio = namespace(new).exp(new - old)
    value, slope = divergence(
        new, _real(target, mask), kl.estimator, kl.gradient, ratio, kl.clamp_in, kl.clamp_out
    )
    return _real(value, mask), _real(slope, mask)


_ALLOWED: Mapping[str, tuple[str, ...]] = {
    "ratio": LEVELS,
    "surrogate": tuple(SURROGATES),
    "aggregation": tuple(AGGREGATIONS),
    "clip.convention": CONVENTIONS,
    "mismatch.level": MISMATCH_LEVELS,
    "mismatch.action": ACTIONS,
    "mismatch.carried": ("same", "token", "none"),
    "divergence.place": ("none", "loss", "reward"),
    "divergence.target": ("reference", "sampler"),
    "divergence.estimator": tuple(ESTIMATORS),
    "divergence.gradient": GRADIENTS,
    "divergence.aggregation": ("same", *AGGREGATIONS),
    "advantage.baseline": rewards_to_advantages.BASELINE_NAMES,
    "advantage.scale": rewards_to_advantages.SCALE_NAMES,
    "advantage.eps_place": rewards_to_advantages.EPS_PLACES,
    "advantage.singleton": rewards_to_advantages.SINGLETONS,
    "advantage.zero_variance": rewards_to_advantages.ZERO_VARIANCE,
    "advantage.whiten": rewards_to_advantages.WHITENINGS,
}


def _check(objective: Objective) -> None:
    known = objective.coordinates()
    for axis, allowed in _ALLOWED.items():
        if known[axis] not in allowed:
            raise ObjectiveError(
                f"{axis} = {known[axis]!r} is unknown; expected one of {', '.join(allowed)}"
            )
    for first, second, clash in _CLASHES:
        if clash(known):
            raise ObjectiveError(
                f"{first} = {known[first]!r} contradicts {second} = {known[second]!r}"
            )


_CLASHES: tuple[tuple[str, str, Any], ...] = (
    (
        "ratio",
        "surrogate",
        lambda k: k["ratio"] == "geometric-of-clipped" and k["surrogate"] != "unclipped",
    ),
    (
        "ratio",
        "surrogate",
        lambda k: k["ratio"].startswith("sequence") and k["surrogate"] == "masked-probability",
    ),
    (
        "clip.low",
        "clip.convention",
        lambda k: k["clip.convention"] == "delta" and (k["clip.low"] or 0.0) >= 1,
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
        lambda k: k["divergence.gradient"] != "naive" and k["divergence.place"] == "reward",
    ),
    (
        "divergence.aggregation",
        "divergence.place",
        lambda k: k["divergence.aggregation"] != "same" and k["divergence.place"] != "loss",
    ),
    (
        "advantage.zero_variance",
        "advantage.scale",
        lambda k: k["advantage.zero_variance"] == "unscaled" and k["advantage.scale"] == "none",
    ),
    (
        "mismatch.low",
        "mismatch.high",
        lambda k: k["mismatch.action"] != "none" and k["mismatch.low"] >= k["mismatch.high"],
    ),
)


def _flat(part: Any, prefix: str = "") -> Any:
    for one in fields(part):
        value = getattr(part, one.name)
        if hasattr(value, "__dataclass_fields__"):
            yield from _flat(value, f"{prefix}{one.name}.")
        else:
            yield f"{prefix}{one.name}", value
