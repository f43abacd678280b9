"""D3. Under the sequence mean wrong answers get longer than the reward asks for.

Statement:
    Where the policy chooses the length, the slope of E[L | wrong] along the direction that is
    followed is larger for the sequence mean than for ∇V, and so is E[L | wrong] at every equal V
    later. On EOS the slope per unit step is .560 for the sequence mean, .060 for the token mean
    and .005 for the constant.

Conditions:
    Shown on EOS, exactly, not for every policy. The second half of the popular sentence, that
    right answers get shorter, is false here: their slope is .547 against .312, as one logit ends
    right and wrong answers alike. Impossible where the environment draws the length (D4).

Proof:
    F = E[(R − V)·s/L] = ∇E[R/L] − V·∇E[1/L] (D2): a wrong answer is pushed away from with weight
    V/L, the less the longer it is, so among wrong answers the long ones survive. For right
    answers the weight (1 − V)/L favours short ones, but the logits are shared. The rest is
    computed: dθ/dV = F/⟨∇V, F⟩ follows either field with V as its clock.

Refutes:
    "GRPO lengthens wrong answers and shortens right ones": the first half holds against the
    unbiased gradient, the second does not in general. "Longer answers show the bias": along ∇V
    itself E[L] rises too, as a longer answer has more chances to hit.

Sources:
    * Liu et al., "Understanding R1-Zero-Like Training: A Critical Perspective",
      arXiv:2503.20783: GRPO lengthens responses, especially incorrect ones (abstract seen)
    * The counterexample for right answers (derived here)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rlproof.lab.calculus import jacobian
from rlproof.lab.claims._d_shared import ascent
from rlproof.lab.claims.model import Number, number
from rlproof.lab.fixtures import eos
from rlproof.lab.policies import Floats
from rlproof.lab.tasks import Task

THREE = ("sequence-mean", "token-mean", "constant-per-sequence")
RUN = "Runge-Kutta over V; another integrator over lengths and rewards"


def numbers() -> tuple[Number, ...]:
    """Slopes at the start, and lengths once both flows have reached V = .8 and .9."""
    task = eos()
    slopes = {reward: [_slope(task, name, reward) for name in THREE] for reward in (0, 1)}
    start = [length_given(task, reward) for reward in (0, 1)]
    at = "finite differences of E[L | r] along E[ĝ], G = 4"
    return (
        number(
            "E[L | wrong], E[L | right] at the start",
            start,
            (2.767717, 4.145991),
            1e-6,
            "enumeration over 364 sequences",
        ),
        number(
            "slope of E[L | wrong]: sequence mean, token mean, constant",
            slopes[0],
            (0.560229, 0.059603, 0.005103),
            1e-6,
            at,
        ),
        number(
            "slope of E[L | right], said to be negative for the sequence mean",
            slopes[1],
            (0.547344, 0.336940, 0.311503),
            1e-6,
            at,
        ),
        *_lengths(task, 0.8, (3.231952, 2.634951), (4.665766, 4.531910)),
        *_lengths(task, 0.9, (3.275264, 2.451993), (4.812451, 4.708598)),
    )


def _lengths(
    task: Task, value: float, wrong: tuple[float, float], right: tuple[float, float]
) -> tuple[Number, ...]:
    ends = [followed(task, power, value) for power in (1.0, 0.0)]
    return tuple(
        number(
            f"E[L | {name}] at V = {value}: sequence mean, constant",
            [length_given(end, reward) for end in ends],
            expected,
            1e-5,
            RUN,
        )
        for reward, name, expected in ((0, "wrong", wrong), (1, "right", right))
    )


def length_given(task: Task, reward: int) -> float:
    """E[L | R = reward]."""
    chosen_N = task.policy.probs * (task.rewards == reward)
    return float(chosen_N @ task.policy.family.lengths / chosen_N.sum())


def _slope(task: Task, aggregation: str, reward: int) -> float:
    direction = ascent(aggregation, task, 4)
    slopes = jacobian(lambda t: length_given(task.at(t), reward), task.policy.theta)
    return float(slopes @ direction / np.linalg.norm(direction))


def followed(task: Task, power: float, value: float, steps: int = 20) -> Task:
    """The task once the flow along E[(R − V)·s/L^power] has reached V = `value`."""
    weight_N = task.policy.family.lengths**-power

    def field(theta: Floats) -> Floats:
        now = task.at(theta)
        direction = now.policy.gradient((now.rewards - now.value) * weight_N)
        scaled: Floats = direction / (now.gradient @ direction)
        return scaled

    theta, h = task.policy.theta.ravel(), (value - task.value) / steps
    for _ in range(steps):
        theta = theta + h * _average_slope(field, theta, h)
    return task.at(theta)


def _average_slope(field: Callable[[Floats], Floats], theta: Floats, h: float) -> Floats:
    first = field(theta)
    second = field(theta + h / 2 * first)
    third = field(theta + h / 2 * second)
    return (first + 2 * second + 2 * third + field(theta + h * third)) / 6
