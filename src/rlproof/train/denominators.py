"""The denominators of an update, over all its micro-batches and processes.

Every micro-batch is given the counts of the whole update, so the gradient does not depend on how
the rows were cut. Shapes: B rows of the update in this process, T slots.
"""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from rlproof.errors import ConfigError
from rlproof.space.aggregation import Scope
from rlproof.space.batch import Batch
from rlproof.space.mismatch import Mismatch, correction
from rlproof.space.objective import Objective
from rlproof.space.terms import terms
from rlproof.train.distributed import Ranks, total

_ROUNDING = 1e-5
"""Nats that two computations of one entropy in single precision may be apart."""


def needs_policy(objective: Objective) -> bool:
    """Whether a denominator depends on the policy at its present weights.

    Then log-probs and entropies of all rows are computed once more, before the gradient.
    """
    moving = any(
        one.action != "none" and one.numerator == "new" and (one.normalised or not one.counted)
        for one in (objective.mismatch, objective.rejection)
    )
    return moving or objective.entropy.top_share < 1


def scope_of(objective: Objective, batch: Batch, group: int, length: float, ranks: Ranks) -> Scope:
    """The counts of the whole update.

    Args:
        objective: what is computed.
        batch: all rows of the update in this process; `new` and `entropy` matter only where
            `needs_policy` holds.
        group: completions a prompt.
        length: the constant of the constant aggregations, tokens.
        ranks: the processes.

    Raises:
        ConfigError: both corrections are normalised, which one number can't describe.
    """
    mask_BT = terms(objective, batch).mask
    rows = len(mask_BT)
    sums = total(ranks, tokens=mask_BT.sum(), sequences=float(rows), prompts=float(rows // group))
    return Scope(
        tokens=sums["tokens"],
        sequences=sums["sequences"],
        prompts=sums["prompts"],
        length=length,
        mean_weight=_mean_weight(objective, batch, ranks),
        entropy_threshold=_threshold(objective, batch, ranks),
    )


def _mean_weight(objective: Objective, batch: Batch, ranks: Ranks) -> float | None:
    """The mean of a normalised correction: over tokens, or over rows where it is a row's."""
    found = [one for one in (objective.mismatch, objective.rejection) if one.normalised]
    found = [one for one in found if one.action != "none"]
    if not found:
        return None
    if len(found) > 1:
        raise ConfigError(
            "mismatch and rejection are both normalised; expected one of them, since an update "
            "that is cut into micro-batches has one mean weight"
        )
    (how,) = found
    weight_BT, mask_BT = _weights(how, batch), batch.mask
    share_BT = mask_BT
    if how.level != "token":
        share_BT = mask_BT / mask_BT.sum(1, keepdim=True).clamp(min=1)
    sums = total(ranks, weight=(weight_BT * share_BT).sum(), count=share_BT.sum())
    return sums["weight"] / max(sums["count"], 1e-8) or 1.0


def _weights(how: Mismatch, batch: Batch) -> Tensor:
    policy = batch.old if how.numerator == "old" and batch.old is not None else batch.new
    sampler = batch.sampler if batch.sampler is not None else batch.old
    adv = batch.advantages if batch.advantages.ndim == 2 else batch.advantages[:, None]
    plain = replace(how, normalised=False)
    weight: Tensor = correction(policy, sampler, batch.mask, plain, adv).weight
    return weight


def _threshold(objective: Objective, batch: Batch, ranks: Ranks) -> float | None:
    """The quantile of the entropies from which on tokens are trained, nats.

    It is lowered by what rounding does to an entropy: the first tokens of a group have one state,
    and a tie at the threshold must not be broken by the micro-batch that they are in.
    """
    share = objective.entropy.top_share
    if share >= 1 or batch.entropy is None:
        return None
    entropy_BT, mask_BT = ranks.rows(batch.entropy.double()), ranks.rows(batch.mask.double())
    real_N = entropy_BT[mask_BT > 0].cpu().numpy()
    if not len(real_N):
        return 0.0
    import numpy as np

    return float(np.quantile(real_N, 1 - share)) - _ROUNDING
