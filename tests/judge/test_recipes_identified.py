"""Every published objective is identified from probes, alone and with planted faults.

A planted fault is one coordinate replaced by the faulty value of the catalogue; 300 random pairs
plant two.
"""

import random

import pytest
from tests.support.fakes import PointLoss
from tests.support.sampling import one_in

from rlproof.faults.registry import catalogue
from rlproof.faults.seen import Batch
from rlproof.judge.evaluate import evaluate
from rlproof.judge.identify import TOLERANCE, identify, residual
from rlproof.judge.points import point_of
from rlproof.probe.loss import everything, observe
from rlproof.space.aggregation import Scope
from rlproof.space.objective import Batch as SpaceBatch
from rlproof.space.published import OBJECTIVES

np = pytest.importorskip("numpy")
LENGTH = 8.0
# the gradient of a row's ratio through each token is that of the row where A is constant in it
SAME = {"sequence-mean-token": "sequence-mean"}
# a cap on the unclipped branch and a floor at A < 0 are one function for any cap > 1 + ε
# and without a group of each row, all rows are of one prompt
ALIKE = {"two-sided": "dual-clip", "prompt-mean": "token-mean"}
NAMES = list(OBJECTIVES)
PLANTS = [f for f in catalogue().values() if f.plant and f.plant.axis in ("ratio", "surrogate",
          "divergence", "aggregation")]  # fmt: skip
SIGNS = {"SUR005": {"surrogate_weight": 1.0}, "KLD001": {"divergence_weight": -1.0},
         "MSK001": {"padding": "counted"}}  # fmt: skip


def loss_point(name):
    objective = OBJECTIVES[name].objective
    point = point_of(objective, LENGTH)
    if point.get("clip_from") == "arguments":  # the probes set the bounds
        point |= {"clip_low": 0.2, "clip_high": 0.2}
    return point


def found_for(point):
    seen = observe(PointLoss(point))
    clip = point.get("clip_from") == "arguments"
    found = identify(seen, (clip, clip), point.get("beta_from") == "arguments")
    return found, residual(found, seen)


def expected(point):
    point = dict(point)
    point["level"] = SAME.get(point["level"], point["level"])
    point["surrogate"] = ALIKE.get(point["surrogate"], point["surrogate"])
    point["aggregation"] = ALIKE.get(point["aggregation"], point["aggregation"])
    if point["surrogate"] in ("log-prob", "unclipped"):
        clips = ("clip_low", "clip_high", "clip_from", "cap")
        log_clip = "clip_convention" in point
        point = {k: v for k, v in point.items() if log_clip or k not in clips}
    return point


def assert_found(point):
    found, left = found_for(point)
    assert left < TOLERANCE
    for axis, value in expected(point).items():
        want = pytest.approx(value) if isinstance(value, float) else value
        assert found.get(axis) == want, axis


@pytest.mark.parametrize("name", NAMES)
def test_every_recipe_is_identified(name):
    assert_found(loss_point(name))


@pytest.mark.parametrize("name", NAMES)
def test_the_point_of_an_objective_has_its_values(name):
    """The loss of `space` and that of the point agree in value and gradient to 1e-12."""
    objective = OBJECTIVES[name].objective
    off = type(objective.mismatch)()
    objective = objective.but(mismatch=off, rejection=off)
    batch: Batch = everything()
    arrays = [np.array(x) for x in (batch.new, batch.old, batch.ref)]
    low, high = objective.clip.low, objective.clip.high
    point = point_of(objective, LENGTH)
    given = batch.but(
        low=1.0 if low is None else low, high=high, beta=objective.divergence.coefficient
    )
    space = SpaceBatch(
        arrays[0], np.array(batch.advantages), np.array(batch.mask), arrays[1], arrays[2],
        scope=Scope(length=LENGTH),
    )  # fmt: skip
    value, _ = objective.loss(space)
    answer = evaluate(point, given)
    assert answer.value == pytest.approx(float(value), abs=1e-12)
    assert answer.gradient == pytest.approx(objective.gradient(space), abs=1e-12)


# no ratio in the gradient, or one that is used to get at the old probability
_OTHER_USE = (
    "log-prob", "cispo", "masked-probability", "trust-region-tv", "trust-region-kl",
    "score-trust-region-tv", "score-trust-region-kl",
)  # fmt: skip


def planted(point, codes):
    """The point with these faults, or None where a fault has no place in it."""
    for code in codes:
        if code in SIGNS:
            axis = next(iter(SIGNS[code]))
            if axis == "padding" and point["level"] != "token":
                return None  # a padded slot has no ratio of its own there
            if axis == "divergence_weight" and point["divergence"] == "none":
                return None
            point = point | SIGNS[code]
            continue
        plant = catalogue()[code].plant
        if point.get(plant.axis) != plant.instead:
            return None
        if plant.axis == "ratio" and point["level"] != "token":
            return None  # a row's ratio has no planted values
        if plant.axis == "ratio" and point["surrogate"] in _OTHER_USE:
            return None
        point = point | {plant.axis: plant.value}
    return point


CODES = [fault.code for fault in PLANTS] + list(SIGNS)
SINGLE = [(n, c) for n in NAMES for c in CODES if planted(loss_point(n), [c])]


def seen_at_all(point):
    """Faults that leave no slope at ratio 1 hide the aggregation, by the nature of the probe."""
    flat = point["ratio"] in ("stopped",) or (
        point["ratio"] == "log-difference" and point["surrogate"] in ("clip-only", "soft-gate")
    )
    return not flat


@pytest.mark.parametrize(("name", "code"), one_in(3, SINGLE))
def test_one_wrong_coordinate_is_found(name, code):
    point = planted(loss_point(name), [code])
    if seen_at_all(point):
        assert_found(point)
    else:
        found, _ = found_for(point)
        assert found["ratio"] == point["ratio"]


def pairs(number):
    """The first of a fixed sequence of points with two planted faults."""
    rng = random.Random(0)
    while number:
        name, codes = rng.choice(NAMES), rng.sample(CODES, 2)
        point = planted(loss_point(name), codes)
        if point and seen_at_all(point):
            number -= 1
            yield point


@pytest.mark.parametrize("block", one_in(12, range(12)))
def test_random_pairs_are_found(block):
    for point in list(pairs(300))[25 * block : 25 * block + 25]:
        assert_found(point)
