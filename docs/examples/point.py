"""An objective, its neighbour with one other coordinate, and what the two compute."""

import numpy as np

from rlproof.space.objective import Batch
from rlproof.space.published import OBJECTIVES

dapo = OBJECTIVES["dapo"].objective
by_row = dapo.but(name="dapo with a mean of rows", aggregation="sequence-mean")

rng = np.random.default_rng(0)
old = np.log(rng.uniform(0.1, 0.9, (3, 4)))
batch = Batch(
    new=old + rng.normal(0, 0.3, (3, 4)),
    old=old,
    advantages=np.array([1.0, -0.5, -0.5]),
    mask=np.array([[1, 0, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]),
)
for objective in (dapo, by_row):
    value, gradient = objective.value_and_gradient(batch)
    print(f"{objective.name:<24} loss {value:+.4f}, ∂L/∂log π {gradient[0, 0]:+.4f}")
