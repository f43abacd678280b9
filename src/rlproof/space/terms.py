"""The terms that a loss and its gradient are put together from. Shapes: B rows, T slots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlproof.space.aggregation import slot_weights
from rlproof.space.arrays import Array, Pair, namespace, stop_gradient, where
from rlproof.space.batch import Batch
from rlproof.space.divergences import divergence
from rlproof.space.entropy import undecided
from rlproof.space.filters import OF_GROUPS
from rlproof.space.mismatch import Correction, Mismatch, correction
from rlproof.space.ratios import Ratio, ratio_of, sided_log_bounds
from rlproof.space.scores import ALL as SURROGATES
from rlproof.space.scores import PUBLISHED as SCORES
from rlproof.space.validity import ObjectiveError

if TYPE_CHECKING:
    from rlproof.space.objective import Objective


@dataclass(frozen=True, slots=True)
class Terms:
    """Values and slopes (B, T) with the weights that they enter with."""

    objective: Objective
    mask: Array
    """1 where a token counts; what a filter or a correction took out entirely is padding."""
    weights: Array
    """Of the surrogate: slot weight times correction."""
    pull_weights: Array
    """Of the divergence: slot weight times β, and times the correction where it applies."""
    ratio: Ratio
    surrogate: Pair
    penalty: Pair
    """The divergence; weighted by the ratio, if it is."""
    through_ratio: Array
    """What the divergence adds to the slope through the ratio of the objective's level."""
    bonus: Array
    """w·c_H·H."""

    def value(self) -> Array:
        """The loss."""
        xp = namespace(self.mask)
        value = xp.sum(self.pull_weights * self.penalty[0] - self.weights * self.surrogate[0])
        return value - xp.sum(self.bonus)

    def gradient(self) -> Array:
        """∂L/∂log π_new, without the bonus."""
        through = -self.weights * self.surrogate[1]
        own = self.pull_weights * self.penalty[1]
        if self.objective.surrogate in SCORES:
            own, through = own + through, through * 0.0
        through = through + self.pull_weights * self.through_ratio
        return (self.ratio.pull(through) + own) * self.mask

    def metrics(self) -> dict[str, Array]:
        """What to log: shares and nats over the tokens that count."""
        xp = namespace(self.mask)
        count = xp.sum(self.mask)
        count = where(count > 0, count, 1.0)
        low, high = self.objective.clip.bounds
        outside = (self.ratio.value < low) | (self.ratio.value > high)
        return {
            "clip_fraction": xp.sum(xp.astype(outside, self.mask.dtype) * self.mask) / count,
            "ratio_mean": xp.sum(self.ratio.value * self.mask) / count,
            "divergence_mean": xp.sum(self.penalty[0] * self.mask) / count,
            "tokens": xp.sum(self.mask),
        }


def terms(how: Objective, batch: Batch) -> Terms:
    """All terms of a batch.

    Raises:
        ObjectiveError: the batch lacks what a coordinate is computed from.
    """
    xp = namespace(batch.new)
    batch = _cleaned(batch)
    adv, mask = batch.advantages, batch.mask
    first = _correction("mismatch", how.mismatch, batch)
    second = _correction("rejection", how.rejection, batch)
    mask, live = _counted(how, batch, (first, second))
    gap = batch.new - batch.old
    bounds = None  # only the geometric mean of clipped ratios clips before it averages
    if how.ratio == "geometric-of-clipped":
        bounds = sided_log_bounds(how.clip.bounds, adv)
    ratio = ratio_of(gap * mask, mask, how.ratio, how.ratio_clamp, bounds)
    value, slope = SURROGATES[how.surrogate](ratio.value, ratio.value, batch.new, adv, how.clip)
    penalty, through_ratio = _penalty(how, batch, ratio)

    own = slot_weights(mask, how.aggregation, batch.scope, batch.groups) * live

    def weigh(name: str) -> Array:
        if name in ("same", how.aggregation):
            return own
        return slot_weights(mask, name, batch.scope, batch.groups) * live

    taken = _taken(how, batch, mask)
    on_divergence = xp.ones_like(mask)
    for one, made in ((how.mismatch, first), (how.rejection, second)):
        on_divergence = on_divergence * made.weight if one.on_divergence else on_divergence
    return Terms(
        objective=how,
        mask=mask,
        weights=own * taken * first.weight * second.weight,
        pull_weights=how.divergence.coefficient * weigh(how.divergence.aggregation) * on_divergence,
        ratio=ratio,
        surrogate=(_real(value, mask), _real(slope, mask)),
        penalty=(_real(penalty[0], mask), _real(penalty[1], mask)),
        through_ratio=_real(through_ratio, mask),
        bonus=_bonus(how, batch, weigh, taken),
    )


def _real(values: Array, mask: Array) -> Array:
    """The values on real tokens; 0 on padding, whatever stood there."""
    return where(mask > 0, values, 0.0)


def _cleaned(batch: Batch) -> Batch:
    """The batch with zeros on padding, advantages for every slot, and an old policy."""
    xp = namespace(batch.new)
    mask = xp.astype(batch.mask, batch.new.dtype)
    new = _real(batch.new, mask)
    adv = batch.advantages if batch.advantages.ndim == 2 else batch.advantages[:, None]

    def cleaned(values: Array | None) -> Array | None:
        return None if values is None else _real(values, mask)

    return replace(
        batch,
        new=new,
        mask=mask,
        advantages=_real(adv + new * 0.0, mask),
        old=stop_gradient(new) if batch.old is None else cleaned(batch.old),
        ref=cleaned(batch.ref),
        sampler=cleaned(batch.sampler),
        entropy=cleaned(batch.entropy),
    )


def _correction(part: str, how: Mismatch, batch: Batch) -> Correction:
    policy = batch.old if how.numerator == "old" else batch.new
    sampler = batch.old if batch.sampler is None and how.numerator == "new" else batch.sampler
    if sampler is None and how.action != "none":
        raise ObjectiveError(f"{part}.action = {how.action!r} needs batch.sampler")
    return correction(policy, sampler, batch.mask, how, batch.advantages, batch.scope.mean_weight)


def _counted(how: Objective, batch: Batch, made: tuple[Correction, ...]) -> Pair:
    """Which tokens count in the denominators, and which of those are trained on."""
    mask, xp = batch.mask, namespace(batch.mask)
    live = xp.ones_like(mask)
    if how.filter.rule in OF_GROUPS:
        if batch.kept is None:
            raise ObjectiveError(f"filter.rule = {how.filter.rule!r} needs batch.kept")
        live = live * xp.astype(batch.kept, mask.dtype)[:, None]
    if how.filter.rule == "zero-advantage":
        live = live * xp.astype(batch.advantages != 0, mask.dtype)
    if not how.filter.counted:
        mask, live = mask * live, xp.ones_like(mask)
    for one, correction_made in zip((how.mismatch, how.rejection), made, strict=True):
        if not one.counted:
            mask = mask * correction_made.kept
    return mask, live


def _penalty(how: Objective, batch: Batch, ratio: Ratio) -> tuple[Pair, Array]:
    """The divergence in value and slope, and its slope through the ratio of the level."""
    kl, zero = how.divergence, batch.mask * 0.0
    if kl.place != "loss" or not kl.coefficient:
        return (zero, zero), zero
    targets = {"reference": batch.ref, "sampler": batch.sampler, "old": batch.old}
    target = targets[kl.target]
    if target is None:
        name = {"reference": "ref"}.get(kl.target, kl.target)
        raise ObjectiveError(f"divergence.place = 'loss' needs batch.{name}")
    token_ratio = namespace(batch.new).exp(batch.new - batch.old)
    value, slope = divergence(
        batch.new, target, kl.estimator, kl.gradient, token_ratio, kl.clamp_in, kl.clamp_out
    )
    if kl.gradient == "level-weighted":
        weighted = value * ratio.value
        return (weighted, slope * ratio.value), weighted
    return (value, slope), zero


def _taken(how: Objective, batch: Batch, mask: Array) -> Array:
    """1 where the surrogate is taken: everywhere, or on tokens of large entropy."""
    if how.entropy.top_share >= 1:
        return namespace(mask).ones_like(mask)
    if batch.entropy is None:
        raise ObjectiveError(f"entropy.top_share = {how.entropy.top_share} needs batch.entropy")
    return undecided(batch.entropy, mask, how.entropy, batch.scope.entropy_threshold)


def _bonus(how: Objective, batch: Batch, weigh: Callable[[str], Array], taken: Array) -> Array:
    if not how.entropy.coefficient:
        return batch.mask * 0.0
    if batch.entropy is None:
        raise ObjectiveError(f"entropy.coefficient = {how.entropy.coefficient} needs batch.entropy")
    weights = weigh(how.entropy.aggregation)
    return how.entropy.coefficient * weights * taken * batch.entropy
