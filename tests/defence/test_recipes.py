"""The nearest recipe, and the comparison with it."""

from rlproof.defence.recipes import compare, nearest
from rlproof.judge.points import point_of
from rlproof.space.published import OBJECTIVES

GRPO = {"baseline": "group-mean", "scale": "population-std", "level": "token", "ratio": "token",
        "surrogate": "min-clip", "divergence": "k3", "aggregation": "sequence-mean",
        "clip_low": 0.2, "clip_high": 0.2}  # fmt: skip


def test_a_point_of_a_recipe_is_nearest_to_it():
    assert nearest(GRPO) == "grpo"
    assert nearest({**GRPO, "level": "sequence-mean"}) == "gspo"
    for name in ("cispo", "dr_grpo", "gmpo", "sapo", "vespo"):
        how = OBJECTIVES[name].objective
        advantage = {"baseline": how.advantage.baseline, "scale": how.advantage.scale}
        assert nearest({**point_of(how), **advantage}) == name


def test_a_fault_does_not_change_the_neighbour():
    assert nearest({**GRPO, "surrogate": "max-clip"}) == "grpo"


def test_nothing_known_has_no_neighbour():
    assert nearest({}) is None
    assert nearest({"padding": "masked"}) is None


def test_differences_are_named():
    point = {**GRPO, "surrogate": "max-clip", "aggregation": "token-mean"}
    found = compare("gspo", True, point, 8, None)
    assert found.says.startswith("The declared recipe is gspo: it differs in level, surrogate")
    cells = {row[0]: row[3] for row in found.table.rows}
    assert cells["level"] == "NO"
    assert cells["baseline"] == "yes"


def test_the_weight_of_hard_prompts_is_compared_up_to_a_factor():
    """w_8(.1)/w_8(.5) = 2.3277/1.8557 of claim A9's table, whatever std it is."""
    same = compare("grpo", False, GRPO, 8, (2.3277, 1.8557))
    assert same.table.rows[-1][3] == "yes"
    other = compare("grpo", False, GRPO, 8, (0.875, 0.875))
    assert other.table.rows[-1][1:] == ("1", "1.254", "NO")
