"""A published objective on the table of the tiny trainer.

The space gives the slope along log π; the chain rule to the logits is that of `tiny.grpo_grad`:
∂L/∂θ_pv = Σ_{i of p, t} s_it · (1[o_it = v] − π_p(v)). Shapes: B rows, P prompts, T slots,
V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlproof import tiny
from rlproof.errors import ConfigError
from rlproof.space.aggregation import Scope
from rlproof.space.filters import OF_GROUPS
from rlproof.space.objective import Batch, Objective, Rollout
from rlproof.space.published import OBJECTIVES
from rlproof.train.tabular import Sampled

Floats = NDArray[np.float64]
_CLIPPING = ("min-clip", "dual-clip", "two-sided", "masked-ratio", "cispo")
"""Surrogates in which the bounds of the ratio act."""


@dataclass(frozen=True, slots=True)
class PublishedRule:
    """An objective of the space as a rule of a tabular run."""

    objective: Objective
    group_size: int
    max_len: int
    """The constant that some objectives divide by (Dr. GRPO)."""

    @classmethod
    def of(cls, name: str, group_size: int, max_len: int) -> PublishedRule:
        """The objective with this name.

        Raises:
            ConfigError: there is none.
        """
        if name not in OBJECTIVES:
            near = get_close_matches(name, OBJECTIVES, 1)
            hint = f"; did you mean {near[0]}?" if near else f": {', '.join(OBJECTIVES)}"
            raise ConfigError(f"--objective is {name!r}, expected a published one{hint}")
        return cls(OBJECTIVES[name].objective, group_size, max_len)

    @property
    def facts(self) -> dict[str, Any]:
        """Its name says all the rest."""
        return {"objective": self.objective.name}

    def advantages(self, batch: Sampled) -> Floats:
        """See `Objective.advantages`."""
        mask_BT = np.array(batch.mask, float)
        rollout = Rollout(np.array(batch.old), mask_BT, np.array(batch.ref))
        made: Floats = self.objective.advantages(
            np.array(batch.rewards), self.group_size, mask_BT.sum(1), rollout
        )
        return made

    def loss(self, new_BT: tiny.Table, batch: Sampled, advantages: Floats) -> float:
        """See `Objective.loss`."""
        return float(self.objective.loss(self._batch(new_BT, batch, advantages))[0])

    def gradient(self, theta: tiny.Table, batch: Sampled, advantages: Floats) -> tiny.Table:
        """See `Objective.gradient`, carried on to the logits."""
        new_BT = tiny.token_logps(theta, batch.rows, batch.tokens)
        slopes_BT = self.objective.gradient(self._batch(new_BT, batch, advantages))
        rows_B1 = np.array(batch.rows)[:, None]
        grad_PV = np.zeros((len(theta), tiny.VOCAB))
        np.add.at(grad_PV, (rows_B1, np.array(batch.tokens)), slopes_BT)
        probs_PV = np.exp([tiny.log_softmax(row) for row in theta])
        table: tiny.Table = (grad_PV - grad_PV.sum(1, keepdims=True) * probs_PV).tolist()
        return table

    def clipped(self, new_BT: tiny.Table, batch: Sampled, advantages: Floats) -> float | None:
        """The share of tokens whose ratio is outside the bounds, at the objective's level."""
        if self.objective.surrogate not in _CLIPPING:
            return None
        metrics = self.objective.loss(self._batch(new_BT, batch, advantages))[1]
        return float(metrics["clip_fraction"])

    def _batch(self, new_BT: tiny.Table, batch: Sampled, advantages: Floats) -> Batch:
        old_BT = np.array(batch.old)
        kept = None
        if self.objective.filter.rule in OF_GROUPS:
            kept = self.objective.kept(np.array(batch.rewards), self.group_size)
        return Batch(
            new=np.array(new_BT), advantages=advantages, mask=np.array(batch.mask, float),
            old=old_BT, ref=np.array(batch.ref), sampler=old_BT, groups=self.group_size,
            scope=Scope(length=float(self.max_len)), kept=kept,
        )  # fmt: skip
