"""Advantages that a divergence enters: in the reward of a row, of a token, or centred.

Shapes: N completions, T slots.
"""

from __future__ import annotations

from typing import Any

from rlproof.space.advantages import Advantage, advantages, finished, unfinished
from rlproof.space.arrays import Array, namespace, stop_gradient, where
from rlproof.space.batch import Rollout
from rlproof.space.divergences import Divergence, divergence
from rlproof.space.validity import ObjectiveError


def shaped(
    rewards: Array,
    groups: Any,
    how: Advantage,
    kl: Divergence,
    *,
    lengths: Array | None = None,
    rollout: Rollout | None = None,
) -> Array:
    """Advantages (N,), or (N, T) where the divergence is one of tokens.

    `reward`: the row's Σ_t β·d_t is taken off its reward (RLOO, arXiv:2402.14740).
    `token-reward`: A_t = γ^(T−t)·A − Σ_{s≥t} γ^(s−t)·β·d_s, whitened over tokens
    (REINFORCE++, arXiv:2501.03262). `advantage`: A_t = A + β·(mean d − d_t).
    """
    if kl.place in ("none", "loss"):
        return advantages(rewards, groups, how, lengths)
    penalty_NT, mask_NT = _penalty(kl, rollout)
    xp = namespace(mask_NT)
    lengths = xp.sum(mask_NT, axis=1) if lengths is None else lengths
    if kl.place == "reward":
        return advantages(rewards, groups, how, lengths, xp.sum(penalty_NT, axis=1))
    if kl.place == "advantage":
        count = xp.sum(mask_NT)
        mean = xp.sum(penalty_NT) / where(count > 0, count, 1.0)
        rows_N1 = advantages(rewards, groups, how, lengths)[:, None]
        return (rows_N1 + mean - penalty_NT) * mask_NT
    rows_N1 = unfinished(rewards, groups, how, lengths)[:, None]
    return _finished(_returns(rows_N1, penalty_NT, mask_NT, how.discount), mask_NT, how)


def of_token_rewards(rewards_NT: Array, mask_NT: Array, how: Advantage) -> Array:
    """The same for the `token-reward` place, of rewards (N, T) that have the divergence in them.

    The reward of the row is in that of one of its tokens, so neither a baseline nor a scale of
    rows is applied. What stands on padding goes to the row's last real token.
    """
    xp = namespace(mask_NT)
    outside_N1 = xp.sum(where(mask_NT > 0, 0.0, rewards_NT), axis=1, keepdims=True)
    return _finished(_returns(outside_N1, -rewards_NT, mask_NT, how.discount), mask_NT, how)


def _finished(returns_NT: Array, mask_NT: Array, how: Advantage) -> Array:
    xp = namespace(mask_NT)
    weight_NT = mask_NT
    if how.whiten == "sequence":
        lengths_N1 = xp.sum(mask_NT, axis=1, keepdims=True)
        weight_NT = mask_NT / where(lengths_N1 > 0, lengths_N1, 1.0)
    return finished(returns_NT, how, weight_NT) * mask_NT


def _penalty(kl: Divergence, rollout: Rollout | None) -> tuple[Array, Array]:
    """β·d of the sampled tokens, 0 on padding, and the mask; both (N, T)."""
    target = rollout and (rollout.ref if kl.target == "reference" else rollout.sampler)
    if rollout is None or target is None:
        raise ObjectiveError(
            f"divergence.place = {kl.place!r} needs a rollout with log-probs of the {kl.target}"
        )
    old = rollout.old
    mask = namespace(old).astype(rollout.mask, old.dtype)
    old, target = where(mask > 0, old, 0.0), where(mask > 0, target, 0.0)
    value, _ = divergence(old, target, kl.estimator, clamp_in=kl.clamp_in, clamp_out=kl.clamp_out)
    return stop_gradient(kl.coefficient * value) * mask, mask


def _returns(rows_N1: Array, penalty_NT: Array, mask_NT: Array, discount: float) -> Array:
    """Discounted return-to-go of −β·d with the row's advantage at its last real token.

    A slot that is masked passes the return on undiscounted.
    """
    xp, width = namespace(mask_NT), mask_NT.shape[1]
    left_N1 = rows_N1 + xp.zeros_like(rows_N1)
    columns = []
    for t in range(width - 1, -1, -1):
        real = mask_NT[:, t : t + 1] > 0
        now = left_N1 - penalty_NT[:, t : t + 1]
        columns.append(xp.where(real, now, left_N1))
        left_N1 = xp.where(real, discount * now, left_N1)
    return xp.concat(columns[::-1], axis=1) if columns else mask_NT
