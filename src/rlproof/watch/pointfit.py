"""Which published objectives, as they stand, give the recorded losses.

Where `lossfit` fits numbers to coordinates, this asks each published point itself, with its own
coefficients or the declared ones: corrections for the sampler are in it too. Two numbers may still
differ: the weight of an entropy bonus, which is fitted, and the division by the declared number of
accumulated batches. Shapes: F factors, K bonuses; B rows, T slots.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from rlproof.space.aggregation import Scope
from rlproof.space.batch import Batch
from rlproof.space.entropy import Entropy
from rlproof.space.objective import Objective
from rlproof.space.published import OBJECTIVES
from rlproof.space.terms import terms
from rlproof.watch.bonus import BONUSES, OF_GRADIENT, Bonus, through_log_probs
from rlproof.watch.candidates import Inputs, inputs
from rlproof.watch.facts import Facts
from rlproof.watch.lossfit import LARGEST
from rlproof.watch.seen import Array, StepSeen

_ASKED = BONUSES[:-1]


@dataclass(frozen=True, slots=True)
class Named:
    """A published objective that gives every recorded loss."""

    name: str
    factor: float
    """What its loss is multiplied with: 1, or as accumulation divides it."""
    bonus: Bonus | None = None
    coefficient: float = 0.0
    """c_H, in units of the objective's own loss."""


@dataclass(slots=True)
class _Point:
    """How far one objective is from the recorded numbers, relative to their size."""

    off: Array
    """The largest distance without a bonus (F,)."""
    rr: Array
    rh: Array
    hh: Array
    """Sums over what is left and the entropy: (F,), (F, K), (F, K)."""

    def after(self, other: _Point) -> _Point:
        """Both steps together."""
        with np.errstate(all="ignore"):  # what is infinite at one step stays out
            off = np.maximum(self.off, other.off)
            return _Point(off, self.rr + other.rr, self.rh + other.rh, self.hh + other.hh)


@dataclass
class PointFit:
    """The largest distance of every published objective from the recorded losses."""

    facts: Facts
    steps: int = 0
    with_entropy: int = 0
    with_gradient: int = 0
    rounding: float = 1e-7
    _points: dict[str, _Point] = field(default_factory=dict)

    @property
    def factors(self) -> tuple[float, ...]:
        """1, and with k accumulated batches once and twice divided."""
        once, twice = divided(self.facts)
        return (1.0, once, twice) if twice < 1 else (1.0,)

    def see(self, step: StepSeen) -> None:
        """One recorded step with a loss."""
        given = inputs(step)
        if given is None or step.loss is None or not abs(step.loss) < LARGEST or not step.whole:
            return
        if self.facts.entropy_coefficient and given.entropy is None:
            return
        self.steps += 1
        self.with_entropy += given.entropy is not None
        self.with_gradient += step.get("grad") is not None
        self.rounding = max(self.rounding, step.rounding)
        seen = _Recorded(given, step, np.array(self.factors))
        for name, published in OBJECTIVES.items():
            found = seen.asked(declared(published.objective, self.facts))
            before = self._points.get(name)
            if before is not None:
                found = found.after(before)
            self._points[name] = found

    def names(self) -> list[str]:
        """Those that give every recorded loss, divided by accumulation once or not at all."""
        return [one.name for one in self._plain(2) if not self._lacks_bonus(one.name)]

    def named(self, batches: int) -> list[Named]:
        """Those, or where there are none those that do with a bonus of some weight.

        Args:
            batches: how many were recorded: several, to tell a bonus from another difference.
        """
        return self._plain(2) or self._with_bonus(batches, 2)

    def twice_divided(self, batches: int) -> list[Named]:
        """Those whose loss is divided by accumulation once more than it may be."""
        if self.named(batches):
            return []
        found = self._plain(3) or self._with_bonus(batches, 3)
        return [one for one in found if one.factor == self.factors[-1]]

    def _plain(self, upto: int) -> list[Named]:
        near = 3 * self.rounding
        factors = self.factors[:upto]
        return [
            Named(name, next(f for f, off in zip(factors, point.off, strict=False) if off < near))
            for name, point in self._points.items()
            if (point.off[: len(factors)] < near).any()
        ]

    def _with_bonus(self, batches: int, upto: int) -> list[Named]:
        often = 1 if self.rounding < 1e-3 else 3
        if self.with_entropy < self.steps or not self.steps:
            return []
        found = []
        for name, point in self._points.items():
            for f, factor in enumerate(self.factors[:upto]):
                for k, bonus in enumerate(_ASKED):
                    if bonus.in_gradient and not self.with_gradient:
                        continue
                    if batches < OF_GRADIENT * often and not bonus.in_gradient:
                        continue
                    c = self._coefficient(point, f, k)
                    if c is not None:
                        found.append(Named(name, factor, bonus, c / factor))
        return list({one.name: one for one in reversed(found)}.values())[::-1]

    def _coefficient(self, point: _Point, f: int, k: int) -> float | None:
        """c of the loss as recorded, where a bonus explains what is left, and is not nothing."""
        with np.errstate(all="ignore"):
            c = point.rh[f, k] / point.hh[f, k]
            left = np.sqrt(max(point.rr[f] - c * point.rh[f, k], 0.0) / self.steps)
            size = abs(c) * np.sqrt(point.hh[f, k] / self.steps)
        return float(c) if left < 3 * self.rounding and size > 10 * self.rounding else None

    def _lacks_bonus(self, name: str) -> bool:
        """Whether a bonus is declared that would show, and is not there."""
        c, h = self.facts.entropy_coefficient, self._points[name].hh[0, 0]
        return bool(c) and abs(c or 0.0) * float(np.sqrt(h / self.steps)) > 30 * self.rounding


def divided(facts: Facts) -> tuple[float, float]:
    """What accumulation makes of a loss: rightly, and divided once more than that.

    A denominator of all accumulated batches divides by their number already.
    """
    k = facts.accumulation or 1
    return (1.0, 1 / k) if facts.denominator else (1 / k, 1 / k**2)


def declared(objective: Objective, facts: Facts) -> Objective:
    """The objective with the declared coefficients."""
    kl, clip = objective.divergence, objective.clip
    if facts.beta is not None and kl.place == "loss":
        kl = replace(kl, coefficient=facts.beta)
    if clip.convention == "delta" and objective.surrogate != "cispo":
        low = clip.low if facts.clip_low is None else facts.clip_low
        high = clip.high if facts.clip_high is None else facts.clip_high
        clip = replace(clip, low=low, high=high)
    return objective.but(divergence=kl, clip=clip)


class _Recorded:
    """One step, to compare objectives with."""

    def __init__(self, given: Inputs, step: StepSeen, factors: Array) -> None:
        weights = given.mask / given.mask.sum()
        self.given, self.factors = given, factors
        self.loss, self.grad = step.loss or 0.0, step.get("grad")
        usual = float(np.abs(given.adv * weights).sum())
        self.size = np.maximum(max(abs(self.loss), 1e-12), factors * usual)
        norm = 0.0 if self.grad is None else float(np.linalg.norm(self.grad))
        self.norm = np.maximum(
            max(norm, 1e-12), factors * float(np.linalg.norm(given.adv * weights))
        )
        self.mean = weights
        self.through = through_log_probs(given.entropy, given.new, given.mask)
        self.batch = Batch(
            new=given.new, advantages=given.adv, mask=given.mask, old=given.old, ref=given.ref,
            sampler=step.get("sampler_logps"), groups=step.groups,
            entropy=np.ones_like(given.new), scope=Scope(tokens=step.declared.denominator),
        )  # fmt: skip

    def asked(self, objective: Objective) -> _Point:
        """The distances; infinity where the objective can't be computed."""
        count, bonuses = len(self.factors), len(_ASKED)
        try:
            with np.errstate(all="ignore"):
                # of an entropy of 1 the bonus is its own weights, from one evaluation
                parts = terms(objective.but(entropy=Entropy(coefficient=1.0)), self.batch)
                weights = parts.bonus
                value = float(parts.value()) + float(weights.sum())
                slopes = None if self.grad is None else parts.gradient()
                return self._compared(value, slopes, weights)
        except ValueError:  # the batch lacks what it is computed from
            lost = np.full(count, np.inf)
            return _Point(lost, lost.copy(), *np.zeros((2, count, bonuses)))

    def _compared(self, value: float, slopes: Array | None, weights: Array) -> _Point:
        rest = (self.factors * value - self.loss) / self.size
        off, squares = np.abs(rest), rest * rest
        h = self._entropies(weights) / self.size[:, None]
        rh, hh = rest[:, None] * h, h * h
        if slopes is not None and self.grad is not None:
            gap = (self.factors[:, None, None] * slopes - self.grad) / self.norm[:, None, None]
            far = np.linalg.norm(gap, axis=(1, 2))
            off, squares = np.maximum(off, far), squares + far * far
            q, norm = self._slopes(weights), self.norm[:, None]
            rh = rh + np.einsum("fbt,kbt->fk", gap, q) / norm
            hh = hh + np.einsum("kbt,kbt->k", q, q) / norm**2
        off = np.where(np.isfinite(off), off, np.inf)
        return _Point(off, squares, rh, hh)

    def _entropies(self, weights: Array) -> Array:
        """Σ u·H of every bonus (K,); NaN without an entropy."""
        if self.given.entropy is None:
            return np.full(len(_ASKED), np.nan)
        entropy = np.where(self.given.mask > 0, self.given.entropy, 0.0)
        by_name = {"same": weights, "token-mean": self.mean}
        return np.array([float((by_name[one.weights] * entropy).sum()) for one in _ASKED])

    def _slopes(self, weights: Array) -> Array:
        """∂(Σ u·H)/∂log π of every bonus (K, B, T), 0 where the entropy is of the logits."""
        found = np.zeros((len(_ASKED), *weights.shape))
        for k, one in enumerate(_ASKED):
            if one.in_gradient:
                by_name = {"same": weights, "token-mean": self.mean}
                found[k] = np.nan if self.through is None else by_name[one.weights] * self.through
        return found
