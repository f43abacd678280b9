"""The closed form against loops written out by hand."""

from math import exp, log

import pytest

from rlproof.faults.seen import Batch
from rlproof.judge.evaluate import evaluate

GRPO = {
    "ratio": "token",
    "surrogate": "min-clip",
    "surrogate_weight": -1.0,
    "clip_from": "arguments",
    "divergence": "k3",
    "divergence_weight": 1.0,
    "beta_from": "arguments",
    "aggregation": "token-mean",
}


def oracle(batch: Batch) -> float:
    """The token mean of −min(ρA, clip(ρ)A) + β·k3, one token after another."""
    total, count = 0.0, 0
    for i, adv in enumerate(batch.advantages):
        for t, real in enumerate(batch.mask[i]):
            if real:
                ratio = exp(batch.new[i][t] - batch.old[i][t])
                clipped = min(max(ratio, 1 - batch.low), 1 + batch.high)
                gap = batch.ref[i][t] - batch.new[i][t]
                total += -min(ratio * adv, clipped * adv) + batch.beta * (exp(gap) - gap - 1)
                count += 1
    return total / count


def test_against_the_loop():
    from rlproof.probe.loss import everything

    assert evaluate(GRPO, everything()).value == pytest.approx(oracle(everything()), rel=1e-12)


@pytest.mark.parametrize(
    ("ratio", "adv", "value", "slope"),
    [
        # L = −min(ρA, clip(ρ)A) with ε = .2; ∂L/∂log π = −ρA where the unclipped term is taken
        (1.0, 1.0, -1.0, -1.0),
        (1.5, 1.0, -1.2, 0.0),
        (0.5, 1.0, -0.5, -0.5),
        (1.5, -1.0, 1.5, 1.5),
        (0.5, -1.0, 0.8, 0.0),
    ],
)
def test_the_clip_table(ratio, adv, value, slope):
    rows = [[log(0.4 * ratio)]]
    answer = evaluate(GRPO, Batch(rows, [[log(0.4)]], rows, [adv], [[1]]))
    assert answer.value == pytest.approx(value)
    assert answer.gradient[0][0] == pytest.approx(slope)


def test_a_padded_slot_may_hold_anything():
    rows = [[-1.0, float("nan")]]
    answer = evaluate(GRPO, Batch(rows, rows, rows, [1.0], [[1, 0]]))
    assert (answer.value, answer.gradient) == (-1.0, [[-1.0, 0.0]])
