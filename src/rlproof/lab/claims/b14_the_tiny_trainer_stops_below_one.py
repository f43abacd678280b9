"""B14. Right as it is, the tiny trainer does not reach reward 1: k3 holds it at p = .9877.

Statement:
    On-policy (one epoch), with population std and G = 8, the expected step of one prompt is 0 at

        E[(1/N)·Σ_i A_i·s_i] = β·(p − 1/4),    N = Σ_i L_i,

    p = π(target), the other three tokens equal, the reference uniform. Near 1 that is

        1 − p ≈ (3/4)·β/√(G − 1).

Conditions:
    A run of constant learning rate moves about this point. With more epochs and early in training
    it is elsewhere: 60 steps of the defaults end at .984.

Proof:
    Every token has k3's expected gradient π − ref (B4), and the N tokens are averaged. For small
    q = 1 − p at most one completion has one wrong token, with chance N·q: its A is −√(G − 1)
    and its score −1, so the left side is √(G − 1)·q, and the right is β·3/4.

Refutes:
    "It stalls at .98, so there is a bug": it is where the expected step is 0. With ∇KL(π‖ref)
    instead, the same trainer would come to rest at 1 − p ≈ 3·exp(−√7/β), 1·10⁻¹¹ at β = .1.

Sources:
    * The condition, its expansion and the numbers (derived here)
"""

from __future__ import annotations

from functools import cache
from math import comb, exp, lgamma

import numpy as np

from rlproof import tiny
from rlproof.lab.claims._b_shared import success
from rlproof.lab.claims.model import Number, number
from rlproof.lab.groups import counts_of, multisets
from rlproof.lab.policies import Floats

GROUP, LENGTHS = 8, range(1, 6)
REWARDS = sorted({hits / length for length in LENGTHS for hits in range(length + 1)})


def numbers() -> tuple[Number, ...]:
    """The resting points, a run that stays there, and the point of the other gradient."""
    weak, strong = (at_rest(beta) for beta in (0.04, 0.1))
    runs = [tiny.train(200, prompts=(0,), epochs=1, lr=1.0, seed=seed)[0] for seed in range(4)]
    return (
        number("p at rest, β = .04 and .1", (weak, strong), (0.987681, 0.964683), 1e-6,
               "enumeration over counts, in the test by another one"),
        number("(1 − p)/(3β/4√7) there, near 1 for small β",
               ((1 - weak) * 7**0.5 / 0.03, (1 - strong) * 7**0.5 / 0.075), (1.086430, 1.245861),
               1e-4, "the same over the expansion"),
        number("the expected step over q at q = 10⁻⁶", push(1e-6) / 1e-6, 7**0.5, 1e-4,
               "expansion: √(G−1); the rest is O(q)"),
        number("mean p of four runs of 200 steps, one prompt, one epoch, β = .04",
               float(np.mean([success(theta) for theta in runs])), weak, 0.0016,
               "p at rest; 4 standard errors of .00079/√4, the sd of 60 runs"),
        number("1 − p at rest with ∇KL(π‖ref) instead, β = .1, times 10¹¹",
               with_kl(0.1, 1e-11) * 1e11, 0.969995, 1e-3,
               "3·exp(−√7/β), which the trainer's eps = 10⁻⁶ moves by .03 %"),
    )  # fmt: skip


def at_rest(beta: float) -> float:
    """p where the expected step is 0: the fixed point of q ← β·(3/4 − q)·q/push(q), by secants."""

    def gap(q: float) -> float:
        return beta * (0.75 - q) * q / push(q) - q

    last, q = 0.0, 0.75 * beta / 7**0.5
    before = q  # the gap at 0, where push is √7·q
    for _ in range(20):
        now = gap(q)
        last, q, before = q, q - now * (q - last) / (now - before), now
        if abs(q - last) < 1e-9:
            break
    return 1 - q


def with_kl(beta: float, near: float) -> float:
    """1 − p where push(q) = β·p·q·(log p − log(q/3)), the first entry of β·∇KL(π‖ref).

    push(q)/q is all but constant for small q, so that its value at `near` will do.
    """
    return 3 * exp(-push(near) / (beta * near))


def push(q: float) -> float:
    """First entry of E[(1/N)·Σ A_i·s_i] at p = 1 − q.

    1/N = ∫ xᴺ⁻¹ dx from 0 to 1, and xᴺ splits into a factor for each completion. The integrand
    has degree 39, which 20 Gauss nodes integrate exactly. Shapes: K rewards, X nodes, M multisets.
    """
    nodes, node_weights = np.polynomial.legendre.leggauss(20)
    x_X, weight_X = (nodes + 1) / 2, node_weights / 2
    chance_KX, score_KX = (np.zeros((len(REWARDS), 20)) for _ in range(2))
    for length in LENGTHS:
        for hits in range(length + 1):
            wrong, k = length - hits, REWARDS.index(hits / length)
            chance_X = 0.2 * comb(length, hits) * (1 - q) ** hits * q**wrong * x_X**length
            chance_KX[k] += chance_X
            score_KX[k] += chance_X * (length * q - wrong)
    counts_MK, log_orders_M, sums_MK = _groups()
    chance_MX = np.exp(log_orders_M[:, None] + counts_MK @ np.log(chance_KX))
    total_MX = sums_MK @ (score_KX / chance_KX)
    return float((weight_X / x_X) @ (chance_MX * total_MX).sum(axis=0))


@cache
def _groups() -> tuple[Floats, Floats, Floats]:
    """Of all groups of eight: counts, log of the orders, and ΣA over the rows of each reward."""
    members_MG = multisets(len(REWARDS), GROUP)
    counts_MK = counts_of(members_MG, len(REWARDS)).astype(float)
    rewards_K = np.array(REWARDS)
    rewards_MG = rewards_K[members_MG]
    log_factorial = np.array([lgamma(n + 1) for n in range(GROUP + 1)])
    log_orders_M = log_factorial[-1] - log_factorial[counts_MK.astype(int)].sum(axis=1)
    apart_MK = rewards_K - rewards_MG.mean(axis=1, keepdims=True)
    sd_M1 = rewards_MG.std(axis=1, keepdims=True)
    return counts_MK, log_orders_M, counts_MK * apart_MK / (sd_M1 + 1e-6)
