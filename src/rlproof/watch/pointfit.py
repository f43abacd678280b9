"""Which published objectives, as they stand, give the recorded losses.

Where `lossfit` fits two numbers to coordinates, this asks each published point itself, with its
own coefficients or the declared ones: corrections for the sampler are in it too.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from rlproof.space.aggregation import Scope
from rlproof.space.batch import Batch
from rlproof.space.objective import Objective
from rlproof.space.published import OBJECTIVES
from rlproof.watch.candidates import Inputs, inputs
from rlproof.watch.facts import Facts
from rlproof.watch.lossfit import LARGEST
from rlproof.watch.seen import StepSeen


@dataclass
class PointFit:
    """The largest distance of every published objective from the recorded losses."""

    facts: Facts
    steps: int = 0
    rounding: float = 1e-7
    off: dict[str, float] = field(default_factory=dict)
    """By name, relative to the mean |A|; infinity where it can't be computed."""

    def see(self, step: StepSeen) -> None:
        """One recorded step with a loss."""
        given = inputs(step)
        if given is None or step.loss is None or not abs(step.loss) < LARGEST or not step.whole:
            return
        self.steps += 1
        self.rounding = max(self.rounding, step.rounding)
        for name, published in OBJECTIVES.items():
            off = _off(declared(published.objective, self.facts), given, step, step.loss)
            self.off[name] = max(self.off.get(name, 0.0), off)

    def names(self) -> list[str]:
        """Those that give every recorded loss."""
        return [name for name, off in self.off.items() if off < 3 * self.rounding]


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


def _off(objective: Objective, given: Inputs, step: StepSeen, loss: float) -> float:
    """How far the objective is from what was recorded; infinity where it can't be computed."""
    batch = Batch(
        new=given.new, advantages=given.adv, mask=given.mask, old=given.old, ref=given.ref,
        sampler=step.get("sampler_logps"), groups=step.groups,
        scope=Scope(tokens=step.declared.denominator),
    )  # fmt: skip
    grad, weights = step.get("grad"), given.mask / given.mask.sum()
    usual = float(np.abs(given.adv * weights).sum())
    try:
        with np.errstate(all="ignore"):
            value, slopes = objective.value_and_gradient(batch)
            off = abs(float(value) - loss) / max(abs(loss), usual, 1e-12)
            if grad is not None:
                size = max(float(np.linalg.norm(grad)), float(np.linalg.norm(given.adv * weights)))
                off = max(off, float(np.linalg.norm(slopes - grad)) / max(size, 1e-12))
    except ValueError:  # the batch lacks what it is computed from
        return float("inf")
    return off if np.isfinite(off) else float("inf")
