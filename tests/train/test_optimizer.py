"""The learning rate is a function of the step; vectors are not decayed."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from rlproof.train.config import Optimizer  # noqa: E402
from rlproof.train.optimizer import made, rate  # noqa: E402


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [  # warm-up over 2 steps of 6, then 4 steps down to a tenth; by hand from the docstring
        ("constant", [0.5, 1, 1, 1, 1, 1]),
        ("linear", [0.5, 1, 1, 0.775, 0.55, 0.325]),
        ("cosine", [0.5, 1, 1, 0.1 + 0.45 * (1 + 0.5**0.5), 0.55, 0.1 + 0.45 * (1 - 0.5**0.5)]),
    ],
)
def test_schedules(schedule, expected):
    how = Optimizer(lr=2.0, schedule=schedule, warmup=2, final=0.1)
    found = [rate(step, 6, how) / 2.0 for step in range(6)]
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("name", ["adamw", "sgd"])
def test_only_matrices_are_decayed(name):
    weights = {"w": torch.nn.Parameter(torch.ones(2, 2)), "b": torch.nn.Parameter(torch.ones(2))}
    one = made(weights, Optimizer(name=name, weight_decay=0.5))
    assert [(len(g["params"][0].shape), g["weight_decay"]) for g in one.param_groups] == [
        (2, 0.5), (1, 0.0),
    ]  # fmt: skip
