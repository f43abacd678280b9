"""Named points. Canonical coordinates are those of the papers named in the sources."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlproof.judge.axes import is_published, values
from rlproof.judge.points import point_of
from rlproof.space import advantages
from rlproof.space.published import OBJECTIVES
from rlproof.space.recipes import DECLARED_AGGREGATIONS, RECIPES, TOLERANT, name_of, normalise

SAME = settings(derandomize=True, deadline=None)


def point(
    baseline, scale, surrogate, aggregation, level="token", clip=(0.2, 0.2), divergence="none"
):
    return {
        "baseline": baseline,
        "scale": scale,
        "ratio": "token",
        "level": level,
        "surrogate": surrogate,
        "clip_low": clip[0],
        "clip_high": clip[1],
        "divergence": divergence,
        "aggregation": aggregation,
    }


CANONICAL = {
    # 2402.03300, eq. 3: mean over sequences of means over tokens, one ε, a k3 penalty
    "grpo": point("group-mean", "population-std", "min-clip", "sequence-mean", divergence="k3"),
    # 2503.14476, eq. 8: mean over tokens, ε_low 0.2 and ε_high 0.28, no penalty
    "dapo": point("group-mean", "population-std", "min-clip", "token-mean", clip=(0.2, 0.28)),
    # 2503.20783, fig. 1: no std, a constant for the lengths
    "dr_grpo": point("group-mean", "none", "min-clip", "constant-per-sequence"),
    # 2507.18071, eq. 5: ratio of sequences, ε of 3e-4 and 4e-4
    "gspo": point(
        "group-mean", "population-std", "min-clip", "sequence-mean", "sequence-mean", (3e-4, 4e-4)
    ),
    # 2506.13585, eq. 4: the clipped weight times log π
    "cispo": point("group-mean", "population-std", "cispo", "token-mean"),
    # 2402.14740, eq. 8: reward minus the mean of the others, times log π of the whole sequence
    "rloo": point("leave-one-out", "none", "log-prob", "sequence-sum"),
    # 2501.03262: PPO's clip, advantages normalised over the batch
    "reinforce++": point("batch-mean", "batch-population-std", "min-clip", "token-mean"),
}  # fmt: skip

LOSS_ALONE = {k: v for k, v in CANONICAL["grpo"].items() if k not in ("baseline", "scale")}


def test_every_tolerant_recipe_has_a_canonical_point_here():
    assert set(CANONICAL) == {recipe.name for recipe in TOLERANT}


def test_every_published_objective_is_a_recipe():
    assert set(RECIPES) == set(OBJECTIVES)


# Published points that one loss and one advantage function do not tell from these. Corrections
# for the sampler, filters and sums of several rewards are no part of either; `bnpo` and
# `grpo-dual-clip` are GRPO by token mean; a clip by the ratio of tokens is what both name.
SAME_HERE = {
    "bnpo": "grpo", "grpo-dual-clip": "grpo", "grpo-two-sided": None, "grpo-tis": "grpo",
    "icepop": "grpo", "seq-mask-tis": "grpo", "opsm": "grpo", "gdpo": "grpo",
    "prompt-mean": None, "opo": None,
    "reinforce++-baseline": "dr_grpo",
}  # fmt: skip


# a batch whitened by tokens is a batch mean and std to a function that sees no lengths
@pytest.mark.parametrize("name", [name for name in OBJECTIVES if name != "reinforce++"])
def test_every_published_point_is_admitted_and_named(name):
    objective = OBJECTIVES[name].objective
    loss = point_of(objective)
    loss |= {"clip_low": objective.clip.low or 0.0, "clip_high": objective.clip.high or 0.0}
    how = objective.advantage
    assert RECIPES[name].admits({**loss, "baseline": how.baseline, "scale": how.scale})
    found = name_of({**loss, "baseline": how.baseline, "scale": how.scale})
    assert found == SAME_HERE.get(name, name)


def test_a_penalty_on_the_drift_is_not_overlooked():
    """DRO without its quadratic term is another objective, and the other way round."""
    assert name_of({**CANONICAL["grpo"], "drift": "k2"}) is None
    dro = {**CANONICAL["dr_grpo"], "surrogate": "log-prob", "aggregation": "token-mean"}
    assert name_of({**dro, "drift": "k2"}) == "dro"
    assert name_of(dro) is None


@pytest.mark.parametrize("name", list(CANONICAL))
def test_recipe_admits_its_canonical_point_and_is_its_name(name):
    assert RECIPES[name].admits(CANONICAL[name])
    assert name_of(CANONICAL[name]) == name


@pytest.mark.parametrize("name", list(CANONICAL))
def test_values_of_a_recipe_are_published(name):
    known = {"baseline": advantages.BASELINES, "scale": advantages.SCALES}
    for axis, allowed in RECIPES[name].coordinates.items():
        if axis in known:
            assert set(allowed) <= set(known[axis])
        elif axis in ("ratio", "surrogate", "aggregation"):
            assert set(allowed) <= set(values(axis))


def faulty(axis):
    return [value for value in values(axis) if not is_published(axis, value)]


@pytest.mark.parametrize("axis", ["ratio", "surrogate"])
def test_faulty_value_has_no_name(axis):
    assert faulty(axis)
    for value in faulty(axis):
        assert name_of({**CANONICAL["grpo"], axis: value}) is None


def test_faulty_surrogate_has_no_name_where_the_advantages_are_unknown():
    for value in faulty("surrogate"):
        assert name_of({**LOSS_ALONE, "surrogate": value}) is None


def test_faulty_ratio_has_no_name_where_the_advantages_are_unknown():
    for value in faulty("ratio"):
        assert name_of({**LOSS_ALONE, "ratio": value}) is None


@pytest.mark.parametrize("name", ["cispo", "gspo", "reinforce++", "rloo"])
def test_faulty_ratio_has_no_name(name):
    assert name_of({**CANONICAL[name], "ratio": "log-prob-ratio"}) is None


def test_faulty_surrogate_has_no_name_whatever_the_advantages():
    assert name_of({**CANONICAL["rloo"], "surrogate": "max-clip"}) is None


@pytest.mark.parametrize("axis", ["surrogate", "level", "divergence", "aggregation"])
def test_no_name_without_a_coordinate_of_the_loss(axis):
    assert name_of({k: v for k, v in CANONICAL["grpo"].items() if k != axis}) is None


def test_loss_alone_has_a_name():
    assert name_of(LOSS_ALONE) == "grpo"


def test_bounds_tell_dapo_from_grpo():
    """Token mean, no penalty: GRPO as TRL has it with one ε, DAPO with two."""
    assert name_of({**CANONICAL["dapo"], "clip_high": 0.2}) == "grpo"
    assert name_of(CANONICAL["dapo"]) == "dapo"
    assert not RECIPES["grpo"].admits(CANONICAL["dapo"])


def test_loss_that_is_not_reduced_is_named_by_the_rest():
    assert name_of({**CANONICAL["grpo"], "aggregation": "per-token"}) == "grpo"


@given(st.fixed_dictionaries({
    "baseline": st.sampled_from(list(advantages.BASELINES)),
    "scale": st.sampled_from(list(advantages.SCALES)),
    "ratio": st.sampled_from(["token", "detached"]),
    "level": st.sampled_from(["token", "sequence-mean", "sequence-sum"]),
    "surrogate": st.sampled_from(["min-clip", "dual-clip", "unclipped", "log-prob", "cispo"]),
    "divergence": st.sampled_from(["none", "k3", "k2"]),
    "aggregation": st.sampled_from(["token-mean", "sequence-mean", "sum", "constant", "per-token"]),
    "clip_low": st.just(0.2),
    "clip_high": st.sampled_from([0.2, 0.28]),
}))  # fmt: skip
@SAME
def test_named_point_is_admitted(coordinates):
    name = name_of(coordinates)
    shown = {k: v for k, v in coordinates.items() if v != "per-token"}
    tried = (*TOLERANT, *(recipe for recipe in RECIPES.values() if recipe.nameable))
    admitting = [recipe.name for recipe in tried if recipe.admits(shown)]
    assert name == (admitting[0] if admitting else None)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("grpo", "grpo"),
        (" DAPO ", "dapo"),
        ("Dr-GRPO", "dr_grpo"),
        ("dr grpo", "dr_grpo"),
        ("DrGRPO", "dr_grpo"),
        ("REINFORCE++", "reinforce++"),
        ("reinforce-plus-plus", "reinforce++"),
    ],
)
def test_spellings(spelling, name):
    assert normalise(spelling) == name


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("grop", "did you mean grpo?"),
        ("Dr. GRPO", "did you mean dr_grpo?"),
        ("xyz", "known: grpo, dapo"),
    ],
)
def test_unknown_recipe_names_the_nearest(wrong, hint):
    with pytest.raises(KeyError, match="no recipe is called") as raised:
        normalise(wrong)
    assert hint in raised.value.args[0]
    assert repr(wrong) in raised.value.args[0]


NO_PAPER = {"bnpo", "grpo-tis", "seq-mask-tis", "prime-rl", "nemo-grpo", "prompt-mean"}
"""Points that a framework or a note published."""


@pytest.mark.parametrize("name", list(RECIPES))
def test_names_are_canonical_and_sourced(name):
    assert normalise(name) == RECIPES[name].name == name
    assert ("arXiv:" in RECIPES[name].source) == (name not in NO_PAPER)


def test_declared_aggregation_is_one_that_the_name_tolerates():
    for name, allowed in DECLARED_AGGREGATIONS.items():
        assert set(allowed) <= set(RECIPES[name].coordinates["aggregation"])
        canonical = CANONICAL[name] if name in CANONICAL else point_of(OBJECTIVES[name].objective)
        assert canonical["aggregation"] in allowed
