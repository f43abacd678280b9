"""C5. The loss starts at 0 for sequence means or equal lengths only, and its gradient does not.

Statement:
    On-policy (ρ = 1, and the reference is the policy itself), with advantages of mean 0 in each
    group, the loss is −mean A = 0 under sequence-mean. Under token-mean it is

        loss = −Σ_i L_i·A_i / Σ_i L_i = −cov(L, A)/mean(L)

    for a group with the lengths L_i.

    In both cases the gradient is −Σ w·A·∇log π, not 0.

Conditions:
    Group-centred advantages, no divergence yet, no entropy bonus. With a constant denominator
    the loss is −cov(L, A)/L_max.

Proof:
    At ρ = 1 every term is A_i. Sequence-mean gives −Σ A_i/G = 0. Token-mean gives A_i once for
    each of its L_i tokens, and mean A = 0, so Σ L_i·A_i/G is the covariance.

Refutes:
    "A loss of 0 means that nothing is learned": the gradient of P4 is .289 long at loss 0.
    "The loss must start at 0": rewards (1, 0) with lengths (1, 3) give +.5 under token-mean.

Sources:
    * TRL issues 2703 and 3452, open-r1 issue 239: the loss starts at 0 (formula seen)
    * The covariance (derived here)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.claims.model import Number, number
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import eos, p4
from rlproof.lab.groups import groups_of, types_by
from rlproof.lab.policies import Floats
from rlproof.space.advantages import Advantage
from rlproof.space.aggregation import Scope
from rlproof.space.objective import Batch, Objective

NORMALISED = Objective("normalised", advantage=Advantage(scale="population-std", eps=0.0))
DIRECT = Objective("direct", advantage=Advantage(scale="none"))
REWARDS, LENGTHS = np.array([1.0, 0.0]), np.array([1, 3])
NAMES = ("sequence-mean", "token-mean", "constant-per-sequence")


def batch_of(advantages: Floats, lengths: Floats) -> Batch:
    """Rows of these lengths at ρ = 1; every token has probability .25."""
    mask = (np.arange(int(lengths.max())) < lengths[:, None]).astype(float)
    logps = np.log(0.25) * mask
    return Batch(logps, advantages, mask, old=logps, scope=Scope(length=5.0))


def loss_of_pair(aggregation: str, lengths: Floats = LENGTHS) -> float:
    """The first loss of rewards (1, 0)."""
    batch = batch_of(NORMALISED.advantages(REWARDS, 2), lengths)
    return float(NORMALISED.but(aggregation=aggregation).loss(batch)[0])


def slopes_of_pair(aggregation: str) -> Floats:
    """∂L/∂log π of the four real tokens of that pair."""
    batch = batch_of(NORMALISED.advantages(REWARDS, 2), LENGTHS)
    slopes = NORMALISED.but(aggregation=aggregation).gradient(batch)
    return np.asarray(slopes[batch.mask > 0])


def first_loss(aggregation: str, size: int) -> float:
    """E[L] at the start of training on EOS with A = R − r̄."""
    task = eos()
    lengths_N = task.policy.family.lengths
    types = types_by(task.policy.probs, task.rewards, lengths_N)
    groups = groups_of(types.probs, size)
    objective, total = DIRECT.but(aggregation=aggregation), 0.0
    for members, weight in zip(types.first[groups.members], groups.weights, strict=True):
        advantages = objective.advantages(task.rewards[members], size)
        total += weight * float(objective.loss(batch_of(advantages, lengths_N[members]))[0])
    return total


def numbers() -> tuple[Number, ...]:
    """Losses and slopes of one pair, the length of a gradient, and expected losses on EOS."""
    size = float(np.linalg.norm(moments(NORMALISED, p4(), 2).mean))
    return (
        *(
            number(f"first loss, {name}, rewards (1, 0), lengths (1, 3)", loss_of_pair(name), v,
                   1e-12, "−Σ w·A with A = (1, −1)")
            for name, v in zip(NAMES, (0.0, 0.5, 0.2), strict=True)
        ),
        *(
            number(f"first loss, {name}, lengths (2, 2)", loss_of_pair(name, np.array([2, 2])), 0.0,
                   1e-12, "−Σ w·A")
            for name in NAMES
        ),
        number("slopes of its tokens, sequence-mean", slopes_of_pair("sequence-mean"),
               (-1 / 2, 1 / 6, 1 / 6, 1 / 6), 1e-12, "−w·A"),
        number("slopes of its tokens, token-mean", slopes_of_pair("token-mean"),
               (-1 / 4, 1 / 4, 1 / 4, 1 / 4), 1e-12, "−w·A"),
        number("|E[ĝ]| where the loss is 0, P4, G = 2", size, 0.289069, 1e-6, "plain sum"),
        number("E of the first loss, sequence-mean, EOS, G = 2", first_loss("sequence-mean", 2),
               0.0, 1e-12, "proof"),
        number("E of the first loss, token-mean, EOS, G = 2", first_loss("token-mean", 2),
               -0.061934, 1e-6, "plain sum over pairs"),
        number("E of the first loss, constant, EOS, G = 2", first_loss("constant-per-sequence", 2),
               -0.034344, 1e-6, "−(1 − 1/G)·cov(L, R)/5"),
    )  # fmt: skip
