"""B12. The slope of k3 saturates at 1 where π is too high, and has no bound where it is too low.

Statement:
    Along log π the slope of k3 is 1 − ref/π: it tends to +1 for π ≫ ref and to −∞ for π ≪ ref.
    That of k2, which is the weight of ∇KL(π‖ref), is log(π/ref) on both sides. Drawn from π,

        E[slope of k3] = 0,    E[(slope of k3)²] = χ²(ref‖π).

Conditions:
    k3 in the loss, the gradient through it. What is unbounded is the slope of one drawn token,
    so the noise; in expectation a token adds π·(1 − ref/π) = π − ref, which is at most 1.

Proof:
    d/dlog π of (ref/π − 1 + log(π/ref)) is 1 − ref/π, and its mean is 1 − Σ ref = 0.
    E[(1 − r)²] = E[r²] − 1 = χ²(ref‖π).

Refutes:
    "k3 pulls lost tokens back without bound": the single pull is unbounded, the expected one is
    not. "Clamping k3 at 10 is only numerics": k3 passes 10 at π/ref = .0735, so the tokens that
    the policy has lost by a factor of 14 or more get no pull at all.

Sources:
    * DeepSeek-AI, "DeepSeek-V3.2: Pushing the Frontier of Open Large Language Models",
      arXiv:2512.02556, section 3.1 on unbounded weights, as quoted in huggingface/trl issue
      #4637 (formula seen)
    * verl 0.9.1, verl/trainer/ppo/core_algos.py, kl_penalty_forward: clamps at 20 and 10
      (formula seen)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.claims._b_shared import peaked, uniform
from rlproof.lab.claims.model import Number, number
from rlproof.lab.divergences import chi_square, estimate
from rlproof.lab.policies import Floats, Policy
from rlproof.space.divergences import divergence

RATIOS = (1000.0, 10.0, 1.0, 0.1, 0.01, 0.001)


def numbers() -> tuple[Number, ...]:
    """Slopes at six ratios, the noise that they make, and what clamping does to them."""
    edge = _edge()
    far, flat = peaked(0.001), uniform()
    return (
        number("slope of k3 at π/ref = 1000, 10, 1, .1, .01, .001", slopes("k3"),
               (0.999, 0.9, 0.0, -9.0, -99.0, -999.0), 1e-9, "closed form 1 − ref/π"),
        number("slope of k2 there", slopes("k2"),
               (6.907755, 2.302585, 0.0, -2.302585, -4.605170, -6.907755), 1e-6, "log(π/ref)"),
        number("√E[slope²] of k3 and k2, π = (.997, .001, .001, .001), ref uniform",
               (root_square("k3", far), root_square("k2", far)), (13.658795, 1.413934), 1e-6,
               "sums over the four arms"),
        number("E[slope²] of k3 there − χ²(ref‖π)", root_square("k3", far) ** 2
               - chi_square(flat, far), 0.0, 1e-9, "closed form"),
        number("E[∇k3] there, said to be unbounded", estimate("k3", far, flat).gradient,
               (0.747, -0.249, -0.249, -0.249), 1e-12, "π − ref"),
        number("π/ref below which k3 > 10", edge, 0.073471, 1e-6, "root of x − 1 − log x = 10"),
        number("slope of k3 clamped at 10, just above and just below that",
               clamped((edge * 1.0001, edge * 0.9999)), (-12.609508, 0.0), 1e-4,
               "1 − ref/π, then 0"),
        number("clamped slopes at the six ratios", clamped(RATIOS),
               (0.999, 0.9, 0.0, -9.0, 0.0, 0.0), 1e-9, "0 where k3 > 10"),
    )  # fmt: skip


def slopes(name: str) -> Floats:
    """∂d/∂log π at the six ratios."""
    slope: Floats = divergence(np.log(RATIOS), np.zeros(len(RATIOS)), name)[1]
    return slope


def clamped(ratios: tuple[float, ...]) -> Floats:
    """∂k3/∂log π with the log-ratio bounded by 20 and the estimate by 10."""
    new, ref = np.log(ratios), np.zeros(len(ratios))
    slope: Floats = divergence(new, ref, "k3", clamp_in=20.0, clamp_out=10.0)[1]
    return slope


def root_square(name: str, policy: Policy) -> float:
    """√E_π[slope²] against the uniform reference."""
    slope = divergence(policy.log_table[0], uniform().log_table[0], name)[1]
    return float(np.sqrt(policy.probs @ slope**2))


def _edge() -> float:
    low, high = 1e-3, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        value = float(divergence(np.log(np.array([middle])), np.zeros(1), "k3")[0][0])
        low, high = (middle, high) if value > 10 else (low, middle)
    return high
