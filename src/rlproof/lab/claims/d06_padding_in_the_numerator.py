"""D6. Padding in the numerator trains the pad token.

Statement:
    If padded slots enter the sum, each row adds (T − L) slots of the pad token, drawn by nobody:

        surrogate:  (T − L)·A·(e_pad − π),

        k3:         (T − L)·(1 − ref_pad/π_pad)·(e_pad − π).

    Neither has mean zero in general. The second grows like 1/π_pad: it holds the pad token up
    wherever the policy has learnt to avoid it.

Conditions:
    The pad id is a token of the vocabulary. Where the environment draws the length and advantages
    are not divided by a standard deviation, Cov(R, L) = 0 and the surrogate's part vanishes in
    expectation. At ρ = 1 the value of the loss hardly shows any of it.

Proof:
    A padded slot has the score e_pad − π with certainty, so no E[s] = 0 protects it. The
    surrogate's part is E[A·(T − L)]·(e_pad − π), which is a covariance. k3 = r − 1 − log r has the
    slope 1 − r, r = ref/π (B4); drawn from π the factor 1/π_pad is met with probability π_pad,
    on padding with probability 1.

Refutes:
    "Padding only dilutes the gradient": in the denominator (D5), not in the numerator. "The pad id
    must not be a real token": a mask that is used decides, and then the id does not matter (E9).

Sources:
    * The two formulas (derived here)
"""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import numpy as np

from rlproof import tiny
from rlproof.lab.calculus import compare
from rlproof.lab.claims.model import Number, number
from rlproof.lab.divergences import estimate
from rlproof.lab.fixtures import eos, seed
from rlproof.lab.groups import groups_of, types_by
from rlproof.lab.policies import Floats, Policy
from rlproof.lab.tasks import Task

TRAINED = (0.01, 0.97, 0.01, 0.01)
"""A policy that has learnt token 1 and avoids the pad token, 0."""
K3 = "closed form 3·(π − ref) + 2·(1 − ref₀/π₀)·(e₀ − π)"
ARRAYS = "the same run, written with arrays"


def padded(policy: Policy) -> Policy:
    """The same logits where every slot counts, padding as token 0; its `probs` mean nothing."""
    family = replace(policy.family, mask=np.ones_like(policy.family.mask))
    return family.at(policy.theta)


def numbers() -> tuple[Number, ...]:
    """Both parts in expectation, and what becomes of a pad token that should be avoided."""
    trained = seed().policy.family.at_probs(TRAINED)
    everywhere = (padded(trained), padded(seed().held_to))
    counted = estimate("k3", *everywhere, drawn=trained.probs).gradient
    right = estimate("k3", trained, seed().held_to).gradient
    with_eos = compare(_surrogate(eos(), True), eos().gradient)
    with_mask, without = trained_pad(True), trained_pad(False)
    return (
        number("E[surrogate], padding's part, SEED, no std",
               _surrogate(seed(), True) - _surrogate(seed(), False), (0.0,) * 4, 1e-12,
               "Cov(R, L) = 0"),
        number("E[A·(T − L)] on SEED with std, G = 2", _pull(2), -0.090216, 1e-6,
               "sum over lengths and hits"),
        number("E[surrogate]/∇V with padding, EOS", with_eos.ratios,
               (0.140538, -0.103748, -0.103748, 0.452251), 1e-6, "1 + Cov(R, 5 − L)·(e₀ − π)/∇V"),
        number("cosine with ∇V, EOS", with_eos.cosine, 0.737268, 1e-6, "the same"),
        number("E[∇Σ k3] at π = (.01, .97, .01, .01), masked", right,
               (-0.72, 2.16, -0.72, -0.72), 1e-12, "3·(π − ref)"),
        number("E[∇Σ k3] there with padding", counted, (-48.24, 48.72, -0.24, -0.24), 1e-9, K3),
        number("tiny trainer, π(0) of prompts 1, 2, 3 after 60 steps", with_mask,
               (0.0047, 0.0068, 0.0048), 1e-3, ARRAYS),
        number("the same with padding in the numerator", without, (0.0651, 0.0571, 0.0734), 2e-3,
               ARRAYS),
    )  # fmt: skip


def _surrogate(task: Task, padding: bool) -> Floats:
    """E[(R − V)·s]: (A3) without its factor."""
    scores = (padded(task.policy) if padding else task.policy).scores
    pull: Floats = task.policy.expect((task.rewards - task.value)[:, None] * scores)
    return pull


def _pull(size: int) -> float:
    """E[A·(5 − L)] of normalised advantages."""
    policy, rewards = seed().policy, seed().rewards
    types = types_by(policy.probs, rewards, policy.family.lengths)
    groups = groups_of(types.probs, size)
    rewards_MG = rewards[types.first][groups.members]
    lengths_MG = policy.family.lengths[types.first][groups.members]
    centred_MG = rewards_MG - rewards_MG.mean(axis=1, keepdims=True)
    spread_M1 = np.sqrt((centred_MG**2).mean(axis=1, keepdims=True))
    advantages_MG = np.where(spread_M1 > 1e-9, centred_MG / np.maximum(spread_M1, 1e-9), 0.0)
    return float(groups.weights @ (advantages_MG * (5 - lengths_MG)).mean(axis=1))


def trained_pad(masked: bool) -> list[float]:
    """π(0) of the prompts that should avoid it; the denominator is N in either case."""
    rng, prompts = Random(0), range(4)
    theta = [[0.0] * 4 for _ in prompts]
    start = [row[:] for row in theta]
    for _ in range(60):
        rows, tokens, mask, rewards = tiny.rollout(theta, prompts, 8, 5, rng)
        used = mask if masked else [[1] * 5 for _ in mask]
        rate = 2.0 * sum(map(sum, used)) / sum(map(sum, mask))
        old, ref = (tiny.token_logps(table, rows, tokens) for table in (theta, start))
        batch = (rows, tokens, old, ref, tiny.group_advantages(rewards, 8), used)
        for _ in range(2):
            grad = tiny.grpo_grad(theta, *batch)
            theta = [[x - rate * g for x, g in zip(*pair, strict=True)]
                     for pair in zip(theta, grad, strict=True)]  # fmt: skip
    return [math.exp(tiny.log_softmax(theta[p])[0]) for p in (1, 2, 3)]
