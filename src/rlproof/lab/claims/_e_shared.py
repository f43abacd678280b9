"""What the claims on numerics share: one off-policy batch of the tiny trainer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from random import Random

from rlproof import tiny

SAMPLED = ((0.2, 0.0, -0.1, -0.3), (-0.4, 0.3, 0.1, 0.0))
MOVED = ((0.6, -0.3, 0.0, -0.3), (-0.5, 0.6, -0.3, 0.1))
"""Where the loss is evaluated: 64 % of the ratios are outside the clip range, none at its edge."""
Table = list[list[float]]


@dataclass(frozen=True)
class Drawn:
    """Two prompts, four completions each, drawn at `SAMPLED`."""

    rows: list[int]
    tokens: list[list[int]]
    mask: list[list[int]]
    advantages: list[float]
    old: Table
    ref: Table

    def loss(self, theta: Table) -> float:
        """The loss of the tiny trainer."""
        new = tiny.token_logps(theta, self.rows, self.tokens)
        return tiny.grpo_loss(new, self.old, self.ref, self.advantages, self.mask)

    def gradient(self, theta: Table) -> Table:
        """Its closed-form gradient."""
        return tiny.grpo_grad(
            theta, self.rows, self.tokens, self.old, self.ref, self.advantages, self.mask
        )


def moved() -> Table:
    """A fresh copy of `MOVED`."""
    return [list(row) for row in MOVED]


@cache
def drawn() -> Drawn:
    """The batch; the reference is uniform."""
    sampled = [list(row) for row in SAMPLED]
    rows, tokens, mask, rewards = tiny.rollout(sampled, (0, 1), 4, 5, Random(0))
    return Drawn(
        rows,
        tokens,
        mask,
        tiny.group_advantages(rewards, 4),
        tiny.token_logps(sampled, rows, tokens),
        tiny.token_logps([[0.0] * 4] * 2, rows, tokens),
    )
