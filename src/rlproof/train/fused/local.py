"""The slope of single slots, before the log-probs of the other slots are known.

An objective is *token-local* if ∂L/∂log π at a slot depends on the log-prob of that slot and on
constants alone. Then

    ∂L/∂log π_bt = −w_bt·κ_bt·s′(ρ_bt, A_bt) + β·w′_bt·d′_bt,

and the weights w·κ, β·w′ and c_H·w″ (of the entropy) follow from mask, advantages and fixed
policies: they are taken once from the whole batch, denominators included, and the slopes s′ and
d′ from the slots at hand. Both come from `rlproof.space.terms`; no formula is written again.

Shapes: B rows, T slots, C slots at hand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from rlproof.space.batch import Batch
from rlproof.space.entropy import Entropy
from rlproof.space.filters import Filter
from rlproof.space.mismatch import Mismatch
from rlproof.space.objective import Objective
from rlproof.space.terms import Terms, terms
from rlproof.train.fused.batch import FusedBatch


def token_local(objective: Objective, batch: FusedBatch) -> bool:
    """Whether the gradient of every slot can be known from that slot's log-prob alone.

    Not so: a ratio of rows; a correction whose weights come from the policy that is trained;
    training on the tokens of largest entropy.
    """
    corrections = (objective.mismatch, objective.rejection)
    moving = any(
        one.action != "none" and (one.numerator == "new" or batch.old is None)
        for one in corrections
    )
    return objective.ratio == "token" and objective.entropy.top_share >= 1 and not moving


@dataclass(frozen=True, slots=True)
class Local:
    """Slopes of the slots of one batch under a token-local objective."""

    bare: Objective
    """The objective without what the weights hold: aggregation, corrections, filter, bonus."""
    fixed: Batch
    whole: Terms
    """Of the whole batch, at log-probs of 0: only its weights are used."""

    @classmethod
    def of(cls, objective: Objective, batch: FusedBatch, dtype: torch.dtype) -> Local:
        """The weights of a batch.

        Raises:
            ObjectiveError: the batch lacks what a coordinate is computed from.
        """
        zeros_BT = torch.zeros_like(batch.mask, dtype=dtype)
        fixed = batch.space(zeros_BT, torch.ones_like(zeros_BT))
        wide_BT = _spread(fixed.advantages, zeros_BT)
        bare = objective.but(
            aggregation="sum",
            filter=Filter(),
            mismatch=Mismatch(),
            rejection=Mismatch(),
            divergence=replace(objective.divergence, aggregation="same"),
            entropy=Entropy(),
        )
        return cls(bare, replace(fixed, advantages=wide_BT), terms(objective, fixed))

    def slopes(self, slots_C: Tensor, new_C: Tensor) -> Tensor:
        """∂L/∂log π of some slots, given as flat places, at their log-probs: (C,)."""

        def at(values_BT: Tensor) -> Tensor:
            chosen: Tensor = values_BT.reshape(-1)[slots_C]
            return chosen[:, None]

        def maybe(values_BT: Tensor | None) -> Tensor | None:
            return None if values_BT is None else at(values_BT)

        one = Batch(
            new=new_C[:, None],
            advantages=at(self.fixed.advantages),
            mask=at(self.fixed.mask),
            old=maybe(self.fixed.old),
            ref=maybe(self.fixed.ref),
            sampler=maybe(self.fixed.sampler),
        )
        here = replace(
            terms(self.bare, one),
            weights=at(self.whole.weights),
            pull_weights=at(self.whole.pull_weights),
            mask=at(self.whole.mask),
        )
        slopes: Tensor = here.gradient()[:, 0]
        return slopes

    def bonus(self, slots_C: Tensor) -> Tensor | None:
        """c_H·w of some slots (C,): how much less the loss is for a nat of their entropy."""
        if not self.whole.objective.entropy.coefficient:
            return None
        weights: Tensor = self.whole.bonus.reshape(-1)[slots_C]  # of an entropy of 1 everywhere
        return weights


def _spread(advantages: Tensor, like_BT: Tensor) -> Tensor:
    wide = advantages if advantages.ndim == 2 else advantages[:, None]
    return wide.expand_as(like_BT)
