"""What one completion adds to the gradient of a batch, taken apart.

For most objectives the ascent direction of a batch is a sum over its rows,

    −∂L/∂θ = Σ_i w_i·(A_i⁺·u_i + A_i⁻·d_i) + w′_i·c_i,        A⁺ = max(A, 0), A⁻ = max(−A, 0),

where u, d and c belong to the sequence alone: the gradients at A = 1, A = −1 and A = 0 (the
divergence). Only the advantage A_i and the slot weights w_i, w′_i depend on the other rows. The
parts are read off `Objective.gradient`; whether the sum is right is tested, never assumed.

Shapes: N sequences of all prompts, T token slots, D parameters of all prompts, B rows of a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rlproof.lab.policies import Floats, Ints
from rlproof.lab.tasks import Task
from rlproof.space.aggregation import Scope, slot_weights
from rlproof.space.divergences import divergence
from rlproof.space.objective import Batch, Objective, Rollout


def refuse_what_is_not_modelled(objective: Objective, tasks: Sequence[Task]) -> None:
    """Coordinates that a table of sequences can't show.

    Raises:
        ValueError: an entropy bonus, a temperature, or a divergence without its reference.
    """
    if objective.entropy.coefficient:
        raise ValueError("the entropy bonus has no gradient through log-probabilities: set it to 0")
    if objective.temperature != 1:
        raise ValueError("temperature is a matter of the policy: divide its logits instead")
    kl = objective.divergence
    if kl.place != "none" and kl.target == "reference" and any(not t.reference for t in tasks):
        raise ValueError(f"divergence in the {kl.place}, but a task has no reference")


def may_be_separate(objective: Objective) -> bool:
    """Whether no coordinate is known to tie the rows of a batch together.

    Filters and rejections that change a denominator, and divergences inside the advantages of
    tokens, do.
    """
    rejects = any(
        part.action == "mask" and not part.counted
        for part in (objective.mismatch, objective.rejection)
    )
    return not (
        rejects
        or objective.filter.rule != "none"
        or objective.entropy.top_share < 1
        or objective.divergence.place in ("token-reward", "advantage")
    )


@dataclass(frozen=True, eq=False)
class Rows:
    """All sequences of all prompts side by side, each with its own block of parameters."""

    objective: Objective
    tasks: tuple[Task, ...]
    scope: Scope
    group_size: int

    @property
    def batch_size(self) -> int:
        """Rows of a batch."""
        return self.group_size * len(self.tasks)

    @cached_property
    def prompts(self) -> Ints:
        """The prompt of each sequence."""
        sizes = [len(task.rewards) for task in self.tasks]
        return np.repeat(np.arange(len(sizes)), sizes)

    @cached_property
    def probs(self) -> Floats:
        """Probability of each sequence within its prompt, under the behaviour."""
        return np.concatenate([task.drawn_from.probs for task in self.tasks])

    @cached_property
    def rewards(self) -> Floats:
        """Rewards, minus the divergence where that belongs to the reward of a completion."""
        return np.concatenate([_shaped(self.objective, task) for task in self.tasks])

    @cached_property
    def on_rewards(self) -> Objective:
        """The objective whose advantages of `rewards` are those of the objective."""
        kl = self.objective.divergence
        return self.objective.but(divergence=replace(kl, place="none", aggregation="same"))

    @cached_property
    def mask(self) -> Floats:
        """1 on real tokens."""
        return self._stacked([task.policy.family.mask for task in self.tasks])

    @cached_property
    def lengths(self) -> Floats:
        """Real tokens of each sequence."""
        lengths: Floats = self.mask.sum(axis=1)
        return lengths

    @cached_property
    def _token_scores(self) -> Floats:
        sizes = [task.policy.theta.size for task in self.tasks]
        scores = np.zeros((*self.mask.shape, sum(sizes)))
        row = column = 0
        for task, size in zip(self.tasks, sizes, strict=True):
            own = task.policy.token_scores
            scores[row : row + len(own), : own.shape[1], column : column + size] = own
            row, column = row + len(own), column + size
        return scores

    @cached_property
    def _policies(self) -> dict[str, Floats | None]:
        """Log-probabilities (N, T) of every policy, by its name in a `Batch`."""
        tasks = self.tasks
        references = [task.reference.logps for task in tasks if task.reference]
        return {
            "new": self._stacked([task.policy.logps for task in tasks]),
            "old": self._stacked([task.compared_with.logps for task in tasks]),
            "sampler": self._stacked([task.drawn_from.logps for task in tasks]),
            "ref": self._stacked(references) if len(references) == len(tasks) else None,
            "entropy": self._stacked([task.policy.token_entropy for task in tasks]),
        }

    def _batch(self, rows: Ints, advantages: Floats, kept: Floats | None = None) -> Batch:
        """These sequences as the rows of a batch."""
        chosen = {k: None if v is None else v[rows] for k, v in self._policies.items()}
        return Batch(
            advantages=advantages,
            mask=self.mask[rows],
            scope=self.scope,
            groups=self.prompts[rows],
            kept=kept,
            **chosen,
        )

    def _stacked(self, arrays: Sequence[Floats]) -> Floats:
        slots = max(array.shape[1] for array in arrays)
        return np.concatenate([np.pad(a, ((0, 0), (0, slots - a.shape[1]))) for a in arrays])

    @cached_property
    def parts(self) -> Floats:
        """u, d and c of every sequence, at slot weight 1."""
        kl = self.objective.divergence
        plain = self.objective.but(
            aggregation="sum", divergence=replace(kl, aggregation="same"), name="parts"
        )
        c, u, d = (self._ascent(plain, np.full(len(self.mask), a)) for a in (0.0, 1.0, -1.0))
        return np.stack([u - c, d - c, c], axis=1)

    def _ascent(self, objective: Objective, advantages_N: Floats) -> Floats:
        gradient_NT = objective.gradient(self._batch(np.arange(len(self.mask)), advantages_N))
        ascent: Floats = -np.einsum("nt,ntd->nd", gradient_NT, self._token_scores)
        return ascent

    def direct(self, members_B: Ints) -> Floats:
        """−∂L/∂θ of one batch, put together by the objective itself.

        Args:
            members_B: sequence numbers, G of the first prompt, then G of the next.
        """
        rewards_B = np.concatenate([task.rewards for task in self.tasks])[members_B]
        blank = self._batch(members_B, rewards_B)
        rollout = Rollout(blank.old, blank.mask, blank.ref, blank.sampler)
        advantages = self.objective.advantages(
            rewards_B, self.group_size, self.lengths[members_B], rollout
        )
        kept_B = self.objective.kept(rewards_B, self.group_size)
        gradient_BT = self.objective.gradient(self._batch(members_B, advantages, kept_B))
        ascent: Floats = -np.einsum("bt,btd->d", gradient_BT, self._token_scores[members_B])
        return ascent

    def put_together(self, members_B: Ints) -> Floats:
        """−∂L/∂θ of one batch as the sum over its rows."""
        lengths_B = self.lengths[members_B]
        advantages_B = self.on_rewards.advantages(
            self.rewards[members_B], self.group_size, lengths_B
        )
        weights = [self.row_weights(name, lengths_B[None, :])[0] for name in self.names]
        factors_B3 = np.stack(factors(advantages_B, *weights), axis=-1)
        total: Floats = np.einsum("bj,bjd->d", factors_B3, self.parts[members_B])
        return total

    def row_weights(self, name: str, lengths_MB: Floats) -> Floats:
        """The slot weight of every row, (M, B), of batches of rows of these lengths."""
        return row_weights(name, lengths_MB, self.scope, self.group_size)

    @property
    def names(self) -> tuple[str, str]:
        """The aggregations of the surrogate and of the divergence."""
        own, other = self.objective.aggregation, self.objective.divergence.aggregation
        return own, own if other == "same" else other

    def separate(self, tries: int = 12) -> bool:
        """Whether the sum over rows gives what the objective gives, on a few random batches."""
        if not may_be_separate(self.objective):
            return False
        rng = np.random.default_rng(0)
        blocks = [np.flatnonzero(self.prompts == p) for p in range(len(self.tasks))]
        for _ in range(tries):
            b = np.concatenate([rng.choice(block, self.group_size) for block in blocks])
            right, summed = self.direct(b), self.put_together(b)
            if np.abs(right - summed).max() > 1e-10 * (1 + np.abs(right).max()):
                return False
        return True


def factors(advantages: Floats, weights: Floats, pull_weights: Floats) -> tuple[Floats, ...]:
    """w·A⁺, w·A⁻ and w′: what u, d and c of a row are multiplied by."""
    return np.maximum(advantages, 0) * weights, np.maximum(-advantages, 0) * weights, pull_weights


def row_weights(name: str, lengths_MB: Floats, scope: Scope, group_size: int) -> Floats:
    """The slot weight of every row, (M, B), of batches of rows of these lengths."""
    profiles, inverse = np.unique(lengths_MB, axis=0, return_inverse=True)
    slots = np.arange(int(lengths_MB.max()))
    weights = [
        slot_weights((slots < row[:, None]).astype(float), name, scope, group_size)[:, 0]
        for row in profiles
    ]
    spread: Floats = np.stack(weights)[inverse.reshape(-1)]
    return spread


def weighs_by_others(name: str, scope: Scope) -> bool:
    """Whether the slot weight of a row depends on the length of another row."""
    weights = row_weights(name, np.array([[1.0, 1.0], [1.0, 2.0]]), scope, 2)
    return bool(weights[0, 0] != weights[1, 0])


def _shaped(objective: Objective, task: Task) -> Floats:
    """R − β·Σ_t d_t, with the log-probabilities of whom the ratio compares with."""
    kl = objective.divergence
    if kl.place != "reward":
        return task.rewards
    target = task.drawn_from if kl.target == "sampler" else task.held_to
    value_NT, _ = divergence(
        task.compared_with.logps,
        target.logps,
        kl.estimator,
        clamp_in=kl.clamp_in,
        clamp_out=kl.clamp_out,
    )
    penalty_N = (value_NT * task.policy.family.mask).sum(axis=1)
    shaped: Floats = task.rewards - kl.coefficient * penalty_N
    return shaped
