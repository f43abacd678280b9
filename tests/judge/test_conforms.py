"""Objectives held against functions: no published one is told from itself, all from a neighbour.

The functions are points of the space, computed by `judge.evaluate` with constants of their own (no
clip range or β is an argument), not by `Objective`.
"""

import pytest

from rlproof.errors import ConfigError
from rlproof.faults.seen import LossSeen, Place
from rlproof.judge import conforms
from rlproof.judge.evaluate import evaluate
from rlproof.judge.points import point_of
from rlproof.space.divergences import Divergence
from rlproof.space.entropy import Entropy
from rlproof.space.objective import Objective
from rlproof.space.published import OBJECTIVES

PLACE = Place("f", 1, 1)


def seen(objective, length=1.0, declared="loss", sign=1.0):
    point = point_of(objective, length)
    point["surrogate_weight"] = sign * float(point["surrogate_weight"])
    return LossSeen(
        "f", frozenset({"mask"}), {}, point, lambda batch: evaluate(point, batch), evaluate,
        declared=declared,
    )  # fmt: skip


def comparable():
    for name, published in OBJECTIVES.items():
        try:
            conforms.refuse(published.objective)
            evaluate(point_of(published.objective), _probe())
        except (ConfigError, KeyError, ValueError):
            continue
        yield name


def _probe():
    from rlproof.probe.loss import one_token

    return one_token(-1.0, -1.2, 1.0)


NAMES = list(comparable())


def test_most_published_objectives_are_comparable():
    """33 are published; the others correct for a sampler, or have terms that no point has."""
    assert len(NAMES) >= 20


@pytest.mark.parametrize("name", NAMES)
def test_a_published_objective_is_itself(name):
    objective = OBJECTIVES[name].objective
    assert list(conforms.of_loss(objective, seen(objective, length=7.0), PLACE)) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_published_objective_is_not_its_neighbour(name):
    objective = OBJECTIVES[name].objective
    other = "token-mean" if objective.aggregation == "sequence-mean" else "sequence-mean"
    found = list(conforms.of_loss(objective.but(aggregation=other), seen(objective), PLACE))
    assert [f.code for f in found] == ["OBJ001"]


def test_what_is_declared_to_be_maximised_is_compared_with_minus_the_loss():
    objective = OBJECTIVES["dapo"].objective
    assert (
        list(conforms.of_loss(objective, seen(objective, declared="objective", sign=-1), PLACE))
        == []
    )
    assert list(conforms.of_loss(objective, seen(objective, declared="loss", sign=-1), PLACE))


@pytest.mark.parametrize(
    ("objective", "axis"),
    [
        (Objective(aggregation="prompt-mean"), "aggregation"),
        (Objective(entropy=Entropy(0.01)), "entropy"),
        (Objective(divergence=Divergence("loss", target="sampler")), "divergence.target"),
    ],
)
def test_what_no_such_function_can_show_is_refused(objective, axis):
    with pytest.raises(ConfigError, match=axis):
        conforms.refuse(objective)
