"""Which objective gives the recorded losses: least squares over all steps at once.

Every candidate is L = a·S + b·D, with S and D known at each step. Their sums of products are all
that is kept, so memory does not grow with the run. A recorded gradient ∂L/∂log π gives as many
equations as it has slots; a loss gives one.
Shapes: I surrogates, W weightings, J divergences; B rows, T slots.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rlproof.watch import candidates as space
from rlproof.watch.facts import Facts
from rlproof.watch.seen import Array, StepSeen

MOST_SLOTS = 4096
"""Slots of a gradient that are compared, of the first rows."""
LARGEST = 1e100
"""A loss from which on nothing is computed with it."""
ENOUGH = 4
"""Batches from which a loss alone can tell: two numbers are fitted."""


@dataclass(frozen=True, slots=True)
class Fit:
    """One candidate that gives the recorded numbers."""

    term: space.Term
    weighting: space.Weighting
    divergence: str
    factor: float
    """a, −1 in a loss that is minimised; NaN where the surrogates are 0 at every step."""
    weight: float
    """b, β in a loss that is minimised."""
    residual: float
    """Root mean square of what is left, relative to the size of the terms."""
    certain: float
    """How far b may be off before it shows: a smaller difference means nothing."""
    faults: tuple[str, ...]
    """What is at fault in it; two codes with a slash give the same values."""

    @property
    def cost(self) -> tuple[int, bool]:
        """Faults, then whether a factor is needed: the least is the simplest explanation."""
        return len(self.faults), abs(abs(self.factor) - 1) > 1e-3


class _Sums:
    """Sums of products of S (I, W), D (J, W) and the observed y."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        i, w, j = shape
        self.ss, self.sy = np.zeros((i, w)), np.zeros((i, w))
        self.dd, self.dy = np.zeros((j, w)), np.zeros((j, w))
        self.sd = np.zeros((i, w, j))
        self.yy = self.size = 0.0
        self.equations = 0


@dataclass
class LossFit:
    """The state of the comparison over one run."""

    facts: Facts
    steps: int = 0
    batches: int = 0
    """Steps of training: updates of one batch say much the same."""
    with_gradient: int = 0
    moved: int = 0
    """Steps whose ratio is not 1 everywhere."""
    rounding: float = 1e-7
    _last: tuple[Any, bytes] = (None, b"")
    _terms: list[space.Term] = field(default_factory=list)
    _values: _Sums | None = None
    _slopes: _Sums | None = None

    def see(self, step: StepSeen) -> None:
        """One recorded step with a loss or a gradient, all of whose rows are there."""
        given = space.inputs(step)
        if given is None or not step.whole:
            return
        loss, grad = step.loss, step.get("grad")
        if loss is not None and not abs(loss) < LARGEST:
            loss = None
        if loss is None and grad is None:
            return
        self._start()
        weights = space.slot_weights(step, given.mask)
        self.rounding = max(self.rounding, step.rounding)
        self.steps += 1
        self._count(step)
        self.moved += bool(np.abs((given.new - given.old) * given.mask).max() > 1e-6)
        if loss is not None:
            self._see_value(given, weights, loss)
        if grad is not None:
            self.with_gradient += 1
            self._see_gradient(given, weights, grad)

    def _count(self, step: StepSeen) -> None:
        """Another batch: of another step, and of other numbers than the one before."""
        packed = step.record.arrays["new_logps"].b
        where = (step.step, step.record.rank)
        if where != self._last[0] and packed != self._last[1]:
            self.batches += 1
        self._last = (where, packed)

    def _start(self) -> None:
        if not self._terms:
            self._terms = space.terms(self.facts)
            shape = (len(self._terms), 2 * len(space.AGGREGATIONS), len(space.DIVERGENCES))
            self._values, self._slopes = _Sums(shape), _Sums(shape)

    def _see_value(self, given: space.Inputs, weights: Array, loss: float) -> None:
        sums = self._values
        assert sums is not None
        slots = _Slots(weights, given)
        s = np.array([slots.sums(space.surrogate(term, given).value) for term in self._terms])
        d = np.array([slots.sums(space.divergence(n, given)[0]) for n in space.DIVERGENCES])
        with np.errstate(all="ignore"):  # a candidate that is NaN at one step is none
            sums.ss += s * s
            sums.sy += s * loss
            sums.dd += d * d
            sums.dy += d * loss
            sums.sd += s[:, :, None] * d.T[None]
        sums.yy += loss * loss
        usual = float(np.abs(given.adv * given.mask).sum() / given.mask.sum())
        sums.size += max(abs(loss), usual) ** 2
        sums.equations += 1

    def _see_gradient(self, given: space.Inputs, weights: Array, grad: Array) -> None:
        sums = self._slopes
        assert sums is not None
        rows = max(1, MOST_SLOTS // max(grad.shape[1], 1))
        y = grad[:rows]
        known = np.isfinite(y)
        y = np.where(known, y, 0.0)
        w = np.nan_to_num(weights[:, :rows]) * known
        w[: len(space.AGGREGATIONS)] *= given.mask[:rows]
        lost = np.isnan(weights).any((1, 2))
        d = [np.nan_to_num(space.divergence(n, given)[1])[:rows] for n in space.DIVERGENCES]
        pulled = [np.where(w > 0, w * slope, 0.0) for slope in d]
        missing = [np.nan if given.ref is None and n != "none" else 0.0 for n in space.DIVERGENCES]
        for i, term in enumerate(self._terms):
            made = space.surrogate(term, given)
            slope = np.nan_to_num(made.slope, posinf=1e150, neginf=-1e150)
            g = np.where(w > 0, w * slope[:rows], 0.0)
            if made.pull is not None:
                g = np.array([_pulled(made.pull, v, slope)[:rows] * known for v in weights])
            with np.errstate(all="ignore"):
                sums.ss[i] += np.where(lost, np.nan, np.einsum("wbt,wbt->w", g, g))
                sums.sy[i] += np.einsum("wbt,bt->w", g, y)
                sums.sd[i] += np.stack([np.einsum("wbt,wbt->w", g, p) for p in pulled], 1)
        for j, p in enumerate(pulled):
            with np.errstate(all="ignore"):
                sums.dd[j] += np.einsum("wbt,wbt->w", p, p) + missing[j]
                sums.dy[j] += np.einsum("wbt,bt->w", p, y)
        sums.yy += float((y * y).sum())
        usual = given.adv * given.mask / given.mask.sum()
        sums.size += float(max((y * y).sum(), (usual[:rows] ** 2).sum()))
        sums.equations += int(known.sum())

    @property
    def decides(self) -> bool:
        """Whether there are more equations than what is fitted, by enough."""
        enough = ENOUGH if self.rounding < 1e-3 else 3 * ENOUGH
        return self.with_gradient > 0 or self.batches >= enough

    def fits(self) -> list[Fit]:
        """Every candidate that gives all the recorded numbers, published ones first."""
        return self._below(3 * self.rounding)

    def closest(self) -> Fit | None:
        """The published candidate that comes closest, however far that is."""
        near = (fit for fit in self._below(np.inf) if not fit.faults)
        return min(near, key=lambda fit: fit.residual, default=None)

    def _below(self, tolerance: float) -> list[Fit]:
        if self._values is None or self._slopes is None or not self.decides:
            return []
        parts = [s for s in (self._values, self._slopes) if s.equations and s.size > 0]
        if not parts:
            return []
        a, b, left = _solve(parts, self.rounding)
        residual = np.sqrt(np.clip(left, 0.0, None) / len(parts))
        pull = np.sqrt(np.sum([part.dd / part.size for part in parts], axis=0))
        with np.errstate(divide="ignore"):
            certain = 30 * self.rounding / pull
        good = np.argwhere(residual < tolerance)
        found = [self._fit(i, w, j, a, b, residual, certain) for i, w, j in good]
        return sorted(found, key=lambda fit: fit.cost)

    def _fit(
        self, i: int, w: int, j: int, a: Array, b: Array, residual: Array, certain: Array
    ) -> Fit:
        term, weighting = self._terms[i], space.WEIGHTINGS[w]
        name = space.DIVERGENCES[j]
        factor, weight, slack = float(a[i, w, j]), float(b[i, w, j]), float(certain[j, w])
        found = _faults(term, weighting, name, factor, weight if abs(weight) > slack else 0.0)
        return Fit(term, weighting, name, factor, weight, float(residual[i, w, j]), slack, found)


class _Slots:
    """Σ w·x for every weighting; over real slots alone where padding has no weight."""

    def __init__(self, weights: Array, given: space.Inputs) -> None:
        flat = weights.reshape(len(weights), -1)
        self.mask = given.mask.ravel() > 0
        self.real = np.ascontiguousarray(flat[:, self.mask])
        self.counted = np.array([how.counted for how in space.WEIGHTINGS])
        self.padding = np.ascontiguousarray(flat[self.counted][:, ~self.mask])
        self.blind = given.blind

    def sums(self, values: Array) -> Array:
        """For values (B, T): one sum for each weighting, NaN where padding decides and is none."""
        x = values.ravel()
        beyond = x[~self.mask]
        with np.errstate(all="ignore"):
            found: Array = self.real @ x[self.mask]
            bad = self.blind or not np.isfinite(beyond).all()
            found[self.counted] += np.nan if bad else self.padding @ beyond
        return found


def _pulled(pull: space.Slopes, weights: Array, slope: Array) -> Array:
    return pull(np.where(np.nan_to_num(weights) > 0, weights * slope, 0.0))


def _solve(parts: list[_Sums], rounding: float) -> tuple[Array, Array, Array]:
    """a, b and the sum of squares left, (I, W, J); b is 0 where there is no divergence.

    Where S and D can't be told apart, or D is 0 throughout, the candidate is that without D.
    Where S is 0 at every step, as advantages that sum to 0 make it at ratio 1, a is NaN: nothing
    is known of it.
    """
    with np.errstate(all="ignore"):  # a sum that overflows explains nothing: see `bad`
        ss, sy, dd, dy, sd = (
            np.sum([getattr(part, name) / part.size for part in parts], axis=0)
            for name in ("ss", "sy", "dd", "dy", "sd")
        )
        yy = sum(part.yy / part.size for part in parts)
    ss, sy = ss[:, :, None], sy[:, :, None]
    dd, dy = dd.T[None], dy.T[None]
    none = np.array([name == "none" for name in space.DIVERGENCES])[None, None]
    with np.errstate(all="ignore"):
        det = ss * dd - sd**2
        flat = ~none & ~(det > 1e-10 * ss * dd)
        zero = ss < (10 * rounding) ** 2
        flat = flat & ~zero
        a = np.where(none, sy / ss, (sy * dd - dy * sd) / det)
        b = np.where(none, 0.0, (dy * ss - sy * sd) / det)
        a = np.where(zero, 0.0, a)
        b = np.where(zero & ~none, dy / dd, b)
        idle = ~zero & (a * a * ss < (10 * rounding) ** 2)  # without the surrogate: no loss
        left = yy - a * sy - b * dy
        exact = yy - 2 * (a * sy + b * dy) + a**2 * ss + 2 * a * b * sd + b**2 * dd
    bad = flat | idle | ~np.isfinite(left) | ~np.isfinite(exact)
    return np.where(zero, np.nan, a), b, np.where(bad, np.inf, np.maximum(left, exact))


def _faults(
    term: space.Term, how: space.Weighting, divergence: str, factor: float, weight: float
) -> tuple[str, ...]:
    """The codes of every faulty coordinate."""
    known = space.codes()
    found: list[str] = []
    if how.counted:
        found.append("MSK001")
    for axis, value in (
        ("ratio", term.ratio),
        ("surrogate", term.surrogate),
        ("divergence", divergence),
        ("aggregation", how.aggregation),
    ):
        if (axis, value) in known and value != "k1":  # k1 in a loss is some frameworks' option
            found.append("/".join(known[axis, value]))
    if factor > 0:
        found.append("SUR005")
    if divergence != "none" and weight < 0:
        found.append("KLD001")
    return tuple(sorted(found))
