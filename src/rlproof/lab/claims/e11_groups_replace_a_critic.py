"""E11. A group's leave-one-out mean is nearly as good as a perfect critic, from G = 8 or so on.

Statement:
    Let ζ₁ = Var[(R − V)·s]/4 and ζ₂ the variance of the kernel (r₁ − r₂)(s₁ − s₂)/2, all total
    variances. Against G samples with the exact V as their baseline, leave-one-out has

        Var/Var_V = ((G − 2) + ζ₂/(2·ζ₁))/(G − 1) → 1,

    at the same expectation (A5). With binary rewards even G = 2 keeps the direction, std or not.

Conditions:
    All G samples are of one prompt, on-policy, sequences count as one action. A critic that knows
    the value of a prefix can do better than V of the prompt; a learned one is biased.

Proof:
    Leave-one-out is a U-statistic of order 2: Var = 2/(G(G − 1))·(2(G − 2)·ζ₁ + ζ₂), while the
    mean of G terms (R − V)·s has 4·ζ₁/G. For binary rewards, G = 2: A = ±1 on a pair that
    differs, (r₁ − r₂)(s₁ − s₂)/2 has the mean ∇p, and dividing by σ̂ = ½ doubles it.

Refutes:
    "GRPO needs large groups for a good baseline": G = 2, 4, 8, 16 lose a factor of 2.76, 1.59,
    1.25 and 1.12 in variance here, and G samples average each other anyway. "G = 2 is biased
    because its std is meaningless": the direction is exact for binary rewards.

Sources:
    * Ahmadian et al., "Back to Basics: Revisiting REINFORCE Style Optimization for Learning from
      Human Feedback in LLMs", arXiv:2402.14740 (from memory)
    * Wu et al., "It Takes Two: Your GRPO Is Secretly DPO", arXiv:2510.00977 (abstract seen)
    * The ratio to the exact baseline (derived here)
"""

from __future__ import annotations

from rlproof.lab.calculus import compare
from rlproof.lab.claims.model import Number, number
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import eos, p4, p4_binary
from rlproof.lab.tasks import Task
from rlproof.space.advantages import Advantage
from rlproof.space.objective import Objective

LEAVE_ONE_OUT = Objective(
    advantage=Advantage(baseline="leave-one-out", scale="none"), aggregation="sequence-sum"
)
PLAIN = LEAVE_ONE_OUT.but(advantage=Advantage(baseline="none", scale="none"))
NORMALISED = LEAVE_ONE_OUT.but(advantage=Advantage(scale="population-std", eps=0.0))
SIZES = (2, 4, 8, 16)
KERNEL = "((G−2) + ζ₂/(2·ζ₁))/(G−1), from sums over pairs"


def oracle(task: Task) -> float:
    """Total variance of one (R − V)·s, with the exact V."""
    return moments(PLAIN, task.but(rewards=task.rewards - task.value), 1).total_variance


def ratios(task: Task, sizes: tuple[int, ...]) -> list[float]:
    """Var of leave-one-out over Var with the exact V, G samples each."""
    exact = oracle(task)
    return [moments(LEAVE_ONE_OUT, task, g).total_variance / (exact / g) for g in sizes]


def numbers() -> tuple[Number, ...]:
    """Variance ratios on P4 and EOS, the critic's own gain, and the direction of G = 2."""
    task, binary = p4(), p4_binary()
    nothing = moments(PLAIN, task, 1).total_variance
    two = [
        compare(moments(o, binary, 2).mean, binary.gradient) for o in (LEAVE_ONE_OUT, NORMALISED)
    ]
    graded = compare(moments(NORMALISED, task, 2).mean, task.gradient)
    return (
        number("Var/Var_V, G = 2, 4, 8, 16, P4", ratios(task, SIZES),
               (2.758226, 1.586075, 1.251175, 1.117215), 1e-6, KERNEL),
        number("Var/Var_V, G = 2, 4, 8, EOS", ratios(eos(), SIZES[:3]),
               (2.364299, 1.454766, 1.194900), 1e-6, KERNEL),
        number("total variance without a baseline, with V, P4", (nothing, oracle(task)),
               (0.247271, 0.063879), 1e-6, "plain sums over four arms"),
        number("E[ĝ]/∇p, G = 2, binary: leave-one-out", two[0].ratios, (1.0,) * 4, 1e-12, "proof"),
        number("E[ĝ]/∇p, G = 2, binary: over the std", two[1].ratios, (1.0,) * 4, 1e-12,
               "½·2: group mean and σ̂ = ½"),
        number("cosine with ∇V, G = 2, rewards (1, .6, .3, 0), over the std", graded.cosine,
               0.995180, 1e-6, "A = sign of r₁ − r₂"),
    )  # fmt: skip
