"""Which objective gives the recorded losses: least squares over all steps at once.

Every candidate is L = a·S + b·D, or L = a·S + b·D + c·H where the entropy H was recorded, with S, D
and H known at each step. Their sums of products are all that is kept, so memory does not grow
with the run. A recorded gradient ∂L/∂log π gives as many equations as it has slots; a loss one.
Shapes: I surrogates, W weightings, J divergences, K bonuses; B rows, T slots.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rlproof.watch import candidates as space
from rlproof.watch.bonus import BONUSES, OF_GRADIENT, SPARE, through_log_probs
from rlproof.watch.facts import Facts
from rlproof.watch.fit import Fit, faults_of
from rlproof.watch.seen import Array, StepSeen
from rlproof.watch.sums import Solved, Sums, solve, solve_with_bonus

MOST_SLOTS = 4096
"""Slots of a gradient that are compared, of the first rows."""
LARGEST = 1e100
"""A loss from which on nothing is computed with it."""
ENOUGH = 4
"""Batches from which a loss alone can tell: two numbers are fitted."""


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
    with_entropy: int = 0
    """Losses beside which the entropy is recorded."""
    left_out: int = 0
    """Losses with a declared bonus whose entropy is not recorded."""
    rounding: float = 1e-7
    _last: tuple[Any, bytes] = (None, b"")
    _terms: list[space.Term] = field(default_factory=list)
    _values: Sums | None = None
    _slopes: Sums | None = None
    _found: list[Fit] | None = None
    """The fits so far, until another step is seen."""

    def see(self, step: StepSeen) -> None:
        """One recorded step with a loss or a gradient, all of whose rows are there."""
        given = space.inputs(step)
        if given is None or not step.whole:
            return
        loss, grad = step.loss, step.get("grad")
        if loss is not None and not abs(loss) < LARGEST:
            loss = None
        if loss is not None and self.facts.entropy_coefficient and given.entropy is None:
            self.left_out += 1
            loss = None
        if loss is None and grad is None:
            return
        self._start()
        self._found = None
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
            self._values, self._slopes = Sums(len(self._terms)), Sums(len(self._terms))

    def _see_value(self, given: space.Inputs, weights: Array, loss: float) -> None:
        sums = self._values
        assert sums is not None
        slots = _Slots(weights, given)
        s = np.array([slots.sums(space.surrogate(term, given).value) for term in self._terms])
        d = np.array([slots.sums(space.divergence(n, given)[0]) for n in space.DIVERGENCES])
        h = _entropies(slots, given)
        self.with_entropy += given.entropy is not None
        with np.errstate(all="ignore"):  # a candidate that is NaN at one step is none
            sums.ss += s * s
            sums.sy += s * loss
            sums.dd += d * d
            sums.dy += d * loss
            sums.sd += s[:, :, None] * d.T[None]
            sums.hh += h * h
            sums.hy += h * loss
            sums.sh += s[:, :, None] * h.T[None]
            sums.dh += d[:, :, None] * h.T[None]
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
        through = _through(given, w, rows, known)
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
                for k, q in through.items():
                    sums.sh[i, :, k] += np.einsum("wbt,wbt->w", g, q)
        for j, p in enumerate(pulled):
            with np.errstate(all="ignore"):
                sums.dd[j] += np.einsum("wbt,wbt->w", p, p) + missing[j]
                sums.dy[j] += np.einsum("wbt,bt->w", p, y)
                for k, q in through.items():
                    sums.dh[j, :, k] += np.einsum("wbt,wbt->w", p, q)
        for k, bonus in enumerate(BONUSES):
            if k in through:
                sums.hh[k] += np.einsum("wbt,wbt->w", through[k], through[k])
                sums.hy[k] += np.einsum("wbt,bt->w", through[k], y)
            elif bonus.in_gradient:
                sums.hh[k] = np.nan
        sums.yy += float((y * y).sum())
        usual = given.adv * given.mask / given.mask.sum()
        sums.size += float(max((y * y).sum(), (usual[:rows] ** 2).sum()))
        sums.equations += int(known.sum())

    @property
    def decides(self) -> bool:
        """Whether there are more equations than what is fitted, by enough."""
        enough = ENOUGH if self.rounding < 1e-3 else 3 * ENOUGH
        return self.with_gradient > 0 or self.batches >= enough

    @property
    def decides_bonus(self) -> bool:
        """Whether that holds with a third number to fit, which a gradient does not know."""
        often = 1 if self.rounding < 1e-3 else 3
        return self.batches >= often * (OF_GRADIENT if self.with_gradient else SPARE)

    def fits(self) -> list[Fit]:
        """Every candidate that gives all the recorded numbers, published ones first."""
        if self._found is None:
            found = self._below(3 * self.rounding)
            for k in self._bonuses():
                found += self._with_bonus(k)
            self._found = sorted(found, key=lambda fit: fit.cost)
        return self._found

    def of_gradients(self) -> list[Fit]:
        """Those of the gradients alone, where losses hold something that these do not."""
        parts = [s for s in (self._slopes,) if s and s.equations and s.size > 0]
        return self._chosen(parts, 3 * self.rounding) if self.with_gradient else []

    def in_doubt(self, blamed: Fit) -> list[Fit]:
        """Healthy ones that differ from a blamed one in the divergence and add a constant.

        A bonus whose entropy hardly changes looks like a constant, and a divergence that hardly
        changes can stand for it. So only the weight of a divergence is in doubt by it.
        """
        if (self.with_entropy and self.decides_bonus) or not self.decides:
            return []
        return [
            fit
            for fit in self._with_bonus(len(BONUSES) - 1)
            if (fit.term, fit.weighting) == (blamed.term, blamed.weighting) and not fit.faults
        ]

    @property
    def certain_bonus(self) -> float:
        """The weight from which on a bonus would show in the losses; infinite without entropy."""
        if self._values is None or not self.with_entropy:
            return float("inf")
        size = float(self._values.hh[1, 0]) / self._values.size
        return 30 * self.rounding / size**0.5 if size > 0 else float("inf")

    def closest(self) -> Fit | None:
        """The published candidate that comes closest, however far that is."""
        near = (fit for fit in self._below(np.inf) if not fit.faults)
        return min(near, key=lambda fit: fit.residual, default=None)

    def _bonuses(self) -> list[int]:
        """Which bonuses are asked about."""
        given = self._values is not None and self.with_entropy == self._values.equations > 0
        found = []
        for k, bonus in enumerate(BONUSES[:-1]):
            through = bonus.in_gradient and self.with_gradient > 0
            if through or (given and self.decides_bonus and not bonus.in_gradient):
                found.append(k)
        return found

    def _parts(self) -> list[Sums]:
        if not self.decides:
            return []
        return [s for s in (self._values, self._slopes) if s and s.equations and s.size > 0]

    def _below(self, tolerance: float) -> list[Fit]:
        return self._chosen(self._parts(), tolerance)

    def _chosen(self, parts: list[Sums], tolerance: float) -> list[Fit]:
        if not parts:
            return []
        solved = solve(parts, self.rounding)
        residual = np.sqrt(np.clip(solved.left, 0.0, None) / len(parts))
        good = np.argwhere(residual < tolerance)
        return [self._fit(i, w, j, solved, residual, None) for i, w, j in good]

    def _with_bonus(self, k: int) -> list[Fit]:
        parts = self._parts()
        if not parts:
            return []
        solved = solve_with_bonus(parts, self.rounding, k)
        residual = np.sqrt(np.clip(solved.left, 0.0, None) / len(parts))
        good = np.argwhere(residual < 3 * self.rounding)
        return [
            self._fit(i, w, j, solved, residual, k)
            for i, w, j in good
            if BONUSES[k].weights != "token-mean" or space.WEIGHTINGS[w] != _TOKENS
        ]

    def _fit(self, i: int, w: int, j: int, of: Solved, residual: Array, k: int | None) -> Fit:
        term, weighting = self._terms[i], space.WEIGHTINGS[w]
        at, name = (i, w, j), space.DIVERGENCES[j]
        factor, weight, slack = float(of.a[at]), float(of.b[at]), float(of.certain[at])
        found = faults_of(term, weighting, name, factor, weight if abs(weight) > slack else 0.0)
        fit = Fit(term, weighting, name, factor, weight, float(residual[at]), slack, found)
        if k is None:
            return fit
        slack = float(of.certain_bonus[at])
        return replace(fit, bonus=BONUSES[k], entropy=float(of.c[at]), certain_entropy=slack)


_TOKENS = space.Weighting("token-mean", False)


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


def _entropies(slots: _Slots, given: space.Inputs) -> Array:
    """Σ u·H of every bonus (K, W), NaN where the entropy is missing."""
    shape, entropy = (len(space.WEIGHTINGS),), given.entropy
    by_name = {"same": np.array(np.nan), "token-mean": np.array(np.nan), "constant": np.array(1.0)}
    if entropy is not None:
        with np.errstate(all="ignore"):
            tokens = entropy[given.mask > 0].mean()
        by_name |= {"same": slots.sums(entropy), "token-mean": np.array(tokens)}
    return np.array([np.broadcast_to(by_name[bonus.weights], shape) for bonus in BONUSES])


def _through(given: space.Inputs, own: Array, rows: int, known: Array) -> dict[int, Array]:
    """Slopes of the bonuses that the gradient contains (W, B, T), by their index."""
    slope = through_log_probs(given.entropy, given.new, given.mask)
    if slope is None:
        return {}
    at = slope[:rows] * known
    mean = given.mask[:rows] / given.mask.sum()
    by_name = {"same": own * at, "token-mean": np.broadcast_to(mean * at, own.shape)}
    return {k: by_name[one.weights] for k, one in enumerate(BONUSES) if one.in_gradient}
