"""Coordinates that are refused, and what the message names."""

import re

import numpy as np
import pytest

from rlproof.space.advantages import Advantage, advantages
from rlproof.space.entropy import Entropy
from rlproof.space.filters import Filter
from rlproof.space.masks import Masks
from rlproof.space.mismatch import Mismatch
from rlproof.space.objective import Batch, Divergence, Objective, ObjectiveError
from rlproof.space.ratios import ratio_of
from rlproof.space.surrogates import Clip
from rlproof.space.validity import ALLOWED, CLASHES

CLASHING = [  # one for each row of CLASHES, in order
    {"ratio": "geometric-of-clipped", "surrogate": "min-clip"},
    {"ratio": "sequence-mean", "surrogate": "masked-probability"},
    {"clip": Clip(1.0, 0.2)},
    {"clip": Clip(1.2, 0.8, convention="absolute")},
    {"divergence": Divergence("reward", gradient="score-weighted")},
    {"divergence": Divergence("token-reward", "old")},
    {"divergence": Divergence("none", aggregation="sum")},
    {"entropy": Entropy(aggregation="sum")},
    {"advantage": Advantage(scale="none", zero_variance="unscaled")},
    {"advantage": Advantage(discount=0.9)},
    {"filter": Filter("mean-range", 1.0, 0.0)},
    {"mismatch": Mismatch("mask", low=2.0, high=0.5)},
    {"rejection": Mismatch("truncate", low=2.0, high=0.5)},
    {"mismatch": Mismatch("truncate", statistic="k3")},
    {"rejection": Mismatch("truncate", statistic="k2")},
]
PARTS = {
    "clip": Clip,
    "mismatch": Mismatch,
    "rejection": Mismatch,
    "entropy": Entropy,
    "filter": Filter,
    "masks": Masks,
    "divergence": Divergence,
    "advantage": Advantage,
}


def test_every_clash_has_an_example():
    assert len(CLASHING) == len(CLASHES)


@pytest.mark.parametrize(
    ("changes", "clash"), list(zip(CLASHING, CLASHES, strict=True)), ids=lambda one: str(one)[:40]
)
def test_clash_names_both_coordinates(changes, clash):
    first, second, _ = clash
    with pytest.raises(ObjectiveError, match="contradicts") as raised:
        Objective(**changes)
    message = str(raised.value)
    assert re.search(rf"{re.escape(first)} = \S+ contradicts {re.escape(second)} = ", message)
    with pytest.raises(ObjectiveError, match="contradicts"):
        Objective().but(**changes)


@pytest.mark.parametrize("axis", list(ALLOWED))
def test_unknown_value_names_the_allowed_ones(axis):
    part, _, field = axis.rpartition(".")
    value = PARTS[part](**{field: "nonsense"}) if part else "nonsense"
    with pytest.raises(ObjectiveError) as raised:
        Objective(**{part or field: value})
    message = str(raised.value)
    assert f"{axis} = 'nonsense' is unknown" in message
    assert all(allowed in message for allowed in ALLOWED[axis])


def test_an_objective_error_is_a_value_error():
    assert issubclass(ObjectiveError, ValueError)


@pytest.mark.parametrize("surrogate", ["unclipped"])
@pytest.mark.parametrize("clip", [Clip(), Clip(None, None), Clip(0.4, 0.4, convention="log")])
def test_what_only_looks_like_a_clash_passes(surrogate, clip):
    Objective(ratio="geometric-of-clipped", surrogate=surrogate, clip=clip)
    Objective(mismatch=Mismatch("none", low=2.0, high=0.5))  # the bounds are not used
    Objective(divergence=Divergence("loss", gradient="score-weighted", aggregation="sum"))


@pytest.mark.parametrize("name", ["constant", "constant-per-sequence"])
def test_constant_aggregation_asks_for_its_constant(name):
    made = Batch(np.zeros((1, 2)), np.ones(1), np.ones((1, 2)))
    with pytest.raises(ValueError, match=rf"{name} divides by a constant: give scope\.length"):
        Objective(aggregation=name).loss(made)


def test_geometric_mean_asks_for_its_bounds():
    with pytest.raises(ValueError, match="needs log-space bounds"):
        ratio_of(np.zeros((1, 2)), np.ones((1, 2)), "geometric-of-clipped")


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (3, "group size 3 does not divide 4 rows"),
        (np.int64(3), "group size 3 does not divide 4 rows"),
        (0, "group size 0 does not divide"),
        (-2, "group size -2 does not divide"),
        (8, "group size 8 does not divide"),
        ([0, 0, 1], "3 group ids for 4 rows"),
        (np.zeros((2, 2)), "4 group ids for 4 rows"),
        ([], "0 group ids for 4 rows"),
    ],
)
def test_bad_groups(groups, message):
    with pytest.raises(ValueError, match=message):
        advantages(np.arange(4.0), groups, Advantage())


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (Advantage("length-weighted-mean"), "length-weighted-mean needs the lengths"),
        (Advantage(whiten="token"), "whitening by token needs the lengths"),
    ],
)
def test_missing_lengths(how, message):
    with pytest.raises(ValueError, match=message):
        advantages(np.arange(4.0), 2, how)


def test_single_member_as_an_error():
    with pytest.raises(ValueError, match="a group has one member"):
        Objective(advantage=Advantage(singleton="error")).advantages(np.arange(3.0), [0, 0, 1])


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (Objective(divergence=Divergence("loss")), "divergence.place = 'loss' needs batch.ref"),
        (
            Objective(divergence=Divergence("loss", "sampler")),
            "divergence.place = 'loss' needs batch.sampler",
        ),
        (Objective(mismatch=Mismatch("mask")), "mismatch.action = 'mask' needs batch.sampler"),
        (
            Objective(rejection=Mismatch("truncate")),
            "rejection.action = 'truncate' needs batch.sampler",
        ),
    ],
)
def test_a_policy_that_is_missing_is_said(how, message):
    """Not silently a loss without the term."""
    made = Batch(np.zeros((1, 2)), np.ones(1), np.ones((1, 2)))
    with pytest.raises(ObjectiveError, match=re.escape(message)):
        how.loss(made)
    with pytest.raises(ObjectiveError, match=re.escape(message)):
        how.gradient(made)
