"""The table of advantages against one call of the objective a group."""

import numpy as np
import pytest

from rlproof.lab.advantages import advantages_of, couples_groups, needs_lengths
from rlproof.space.advantages import Advantage
from rlproof.space.objective import Objective

REWARDS = np.array(
    [[0.2] * 4, [0, 0, 0, 1.0], [0.1, 0.3, 0.3, 0.9], [-2, 0, 1e-6, 5], [0, 1.0, 1, 1]] * 101
)
LENGTHS = np.array([[1.0, 2, 3, 4], [2, 2, 1, 5], [1, 1, 1, 1], [4, 3, 2, 1], [1, 5, 1, 5]] * 101)


def one_by_one(objective, size):
    return np.array(
        [objective.advantages(r, size, n) for r, n in zip(REWARDS, LENGTHS, strict=True)]
    )


@pytest.mark.parametrize("baseline", ["group-mean", "leave-one-out", "none", "batch-mean",
                                      "length-weighted-mean"])  # fmt: skip
@pytest.mark.parametrize("scale", ["none", "population-std", "sample-std", "leave-one-out-std",
                                   "batch-population-std", "nonzero-share"])  # fmt: skip
@pytest.mark.parametrize("size", [2, 4])
def test_same_as_called_one_by_one(baseline, scale, size):
    objective = Objective(advantage=Advantage(baseline=baseline, scale=scale))
    found = advantages_of(objective, REWARDS, LENGTHS, size)
    np.testing.assert_allclose(found, one_by_one(objective, size), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("how", [Advantage(eps=0.0), Advantage(clip=1.0), Advantage(whiten="token"),
                                 Advantage(eps_place="sqrt(var + eps)", eps=0.1)])  # fmt: skip
def test_further_coordinates(how):
    objective = Objective(advantage=how)
    found = advantages_of(objective, REWARDS, LENGTHS, 4)
    np.testing.assert_allclose(found, one_by_one(objective, 4), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("how", "coupled", "lengths"),
    [
        (Advantage(), False, False),
        (Advantage(baseline="leave-one-out", scale="none"), False, False),
        (Advantage(baseline="batch-mean"), True, False),
        (Advantage(scale="batch-sample-std"), True, False),
        (Advantage(scale="nonzero-share"), True, False),
        (Advantage(whiten="sequence"), True, False),
        (Advantage(whiten="token"), True, True),
        (Advantage(baseline="length-weighted-mean"), False, True),
    ],
)
def test_what_advantages_depend_on_is_read_off(how, coupled, lengths):
    objective = Objective(advantage=how)
    assert (couples_groups(objective), needs_lengths(objective)) == (coupled, lengths)
