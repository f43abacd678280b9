"""A task: the policy that is trained on one prompt, its rewards, and the policies beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from rlproof.lab.policies import Floats, Policy


@dataclass(frozen=True, eq=False)
class Task:
    """One prompt. All policies share one family.

    Raises:
        ValueError: another number of rewards than sequences, or policies of two families.
    """

    policy: Policy
    """The policy that is trained: `new` log-probs and scores."""
    rewards: Floats
    """A reward for every sequence (N,)."""
    behaviour: Policy | None = None
    """Who draws the sequences; None is on-policy."""
    old: Policy | None = None
    """Whom the ratio compares with; None is the behaviour."""
    reference: Policy | None = None
    """Whom a divergence compares with."""

    def __post_init__(self) -> None:
        family = self.policy.family
        if self.rewards.shape != family.chance.shape:
            raise ValueError(f"{self.rewards.size} rewards for {family.chance.size} sequences")
        others = (self.behaviour, self.old, self.reference)
        if any(other is not None and other.family is not family for other in others):
            raise ValueError("the policies of a task must share one family")

    @property
    def drawn_from(self) -> Policy:
        """The policy that draws the sequences."""
        return self.behaviour or self.policy

    @property
    def compared_with(self) -> Policy:
        """The policy in the denominator of the ratio."""
        return self.old or self.drawn_from

    @property
    def held_to(self) -> Policy:
        """The reference.

        Raises:
            ValueError: the task has none.
        """
        if self.reference is None:
            raise ValueError("the task has no reference")
        return self.reference

    @property
    def value(self) -> float:
        """Exact V of the trained policy."""
        return self.policy.value(self.rewards)

    @property
    def gradient(self) -> Floats:
        """Exact ∇V of the trained policy, (D,)."""
        return self.policy.gradient(self.rewards)

    def at(self, theta: Any) -> Task:
        """The same task with other logits of the trained policy."""
        return self.but(policy=self.policy.family.at(theta))

    def but(self, **changes: Any) -> Task:
        """The same task with some fields replaced."""
        return replace(self, **changes)
