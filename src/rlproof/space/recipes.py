"""Named points of the space: which coordinates a recipe asks for.

A coordinate that a recipe does not list is free. Names are those of the papers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from rlproof.space.advantages import BASELINES
from rlproof.space.published import OBJECTIVES, Published

Point = Mapping[str, str | float]
_TOKEN_RATIOS = ("token", "detached")
_GROUP_STD = ("population-std", "sample-std")
_CONSTANTS = ("constant-per-sequence", "constant")


@dataclass(frozen=True, slots=True)
class Recipe:
    """A published objective: allowed values per coordinate, and where it was published."""

    name: str
    source: str
    coordinates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    clip: str = "any"
    """`symmetric`, `asymmetric` or `any`."""
    needs: str = "surrogate"
    """A coordinate without which the name says nothing."""
    nameable: bool = True
    """Whether its coordinates tell it from the others; otherwise it can only be declared."""

    def admits(self, point: Point) -> bool:
        """Whether no known coordinate of the point contradicts the recipe.

        A recipe that is all about the advantages needs them known.
        """
        if self.needs not in point or "divergence_aggregation" in point:
            return False
        if ("drift" in point) != ("drift" in self.coordinates):
            return False
        for axis, allowed in self.coordinates.items():
            if axis in point and point[axis] not in allowed:
                return False
        low, high = point.get("clip_low"), point.get("clip_high")
        if self.clip == "any" or low is None or high is None:
            return True
        return (low == high) == (self.clip == "symmetric")


TOLERANT: tuple[Recipe, ...] = (
    Recipe(
        "grpo",
        "Shao et al., DeepSeekMath, arXiv:2402.03300",
        {
            "baseline": ("group-mean",),
            "scale": _GROUP_STD,
            "level": ("token",),
            "ratio": _TOKEN_RATIOS,
            "surrogate": ("min-clip", "dual-clip", "unclipped"),
            "aggregation": ("sequence-mean", "token-mean"),
        },
        "symmetric",
    ),
    Recipe(
        "dapo",
        "Yu et al., DAPO, arXiv:2503.14476",
        {
            "baseline": ("group-mean",),
            "scale": _GROUP_STD,
            "level": ("token",),
            "ratio": _TOKEN_RATIOS,
            "surrogate": ("min-clip", "dual-clip"),
            "divergence": ("none",),
            "aggregation": ("token-mean",),
        },
    ),
    Recipe(
        "dr_grpo",
        "Liu et al., Understanding R1-Zero-Like Training, arXiv:2503.20783",
        {
            "baseline": ("group-mean",),
            "scale": ("none",),
            "level": ("token",),
            "ratio": _TOKEN_RATIOS,
            "surrogate": ("min-clip", "unclipped"),
            "aggregation": (*_CONSTANTS, "sequence-sum", "token-mean", "sequence-mean"),
        },
    ),
    Recipe(
        "gspo",
        "Zheng et al., GSPO, arXiv:2507.18071",
        {
            "baseline": ("group-mean",),
            "scale": _GROUP_STD,
            "level": ("sequence-mean",),
            "ratio": ("token",),
            "surrogate": ("min-clip",),
            "aggregation": ("sequence-mean",),
        },
    ),
    Recipe(
        "cispo",
        "MiniMax-M1, arXiv:2506.13585",
        {
            "baseline": ("group-mean",),
            "scale": _GROUP_STD,
            "ratio": ("token",),
            "surrogate": ("cispo",),
            "aggregation": ("token-mean",),
        },
    ),
    Recipe(
        "rloo",
        "Ahmadian et al., Back to Basics, arXiv:2402.14740",
        {
            "baseline": ("leave-one-out",),
            "scale": ("none",),
            "ratio": _TOKEN_RATIOS,
            "surrogate": ("log-prob", "unclipped", "min-clip"),
        },
        needs="baseline",
    ),
    Recipe(
        "reinforce++",
        "Hu et al., REINFORCE++, arXiv:2501.03262",
        {
            "baseline": ("batch-mean",),
            "scale": ("batch-population-std", "batch-sample-std"),
            "level": ("token",),
            "ratio": ("token",),
            "surrogate": ("min-clip",),
            "aggregation": ("token-mean", "sequence-mean"),
        },
    ),
)
"""Recipes that papers and frameworks spell with some freedom."""


def _exact(published: Published) -> Recipe:
    """A recipe of just the coordinates of a published point."""
    objective = published.objective
    advantage, scale = objective.advantage, objective.advantage.scale
    coordinates = {
        "level": (objective.ratio,),
        "ratio": _TOKEN_RATIOS,
        "surrogate": (objective.surrogate,),
        "aggregation": _CONSTANTS if "constant" in objective.aggregation else (
            objective.aggregation,
        ),
        "scale": _GROUP_STD if scale in _GROUP_STD else (scale,),
    }  # fmt: skip
    if advantage.baseline in BASELINES:
        coordinates["baseline"] = (advantage.baseline,)
    if objective.divergence.target == "old":
        coordinates["drift"] = (objective.divergence.estimator,)
    special = scale in _TELLING
    return Recipe(
        objective.name,
        published.source,
        coordinates,
        needs="scale" if special else "surrogate",
        nameable=special
        or (objective.surrogate, objective.ratio) not in _COMMON
        or "drift" in coordinates,
    )


_TELLING = ("nonzero-share", "group-mean", "leave-one-out-std")
"""Scales that one recipe has."""
_COMMON = {
    (surrogate, "token") for surrogate in ("min-clip", "dual-clip", "two-sided", "log-prob")
}  # fmt: skip
"""Surrogates and levels that many recipes have."""
RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (*map(_exact, OBJECTIVES.values()), *TOLERANT)  # the tolerant ones win
}
"""Every published objective by name."""
DECLARED_AGGREGATIONS: dict[str, tuple[str, ...]] = {
    **{
        name: RECIPES[name].coordinates["aggregation"]
        for name in OBJECTIVES
        if name not in {recipe.name for recipe in TOLERANT}
    },
    "grpo": ("sequence-mean",),
    "dapo": ("token-mean",),
    "dr_grpo": _CONSTANTS,
    "gspo": ("sequence-mean",),
    "cispo": ("token-mean",),
}
"""What a *declared* recipe asks of the aggregation; stricter than what a name tolerates."""


def name_of(point: Point) -> str | None:
    """The first recipe that a point agrees with; None where a coordinate of the loss is unknown."""
    if not {"surrogate", "level", "divergence", "aggregation"} <= set(point):
        return None
    if point["aggregation"] == "per-token":  # whoever reduces it decides
        point = {axis: value for axis, value in point.items() if axis != "aggregation"}
    tried = (*TOLERANT, *(recipe for recipe in RECIPES.values() if recipe.nameable))
    return next((recipe.name for recipe in tried if recipe.admits(point)), None)


def normalise(name: str) -> str:
    """The canonical spelling of a recipe's name.

    Raises:
        KeyError: no such recipe; the message names the known ones.
    """
    wanted = _plain(name)
    wanted = {"drgrpo": "dr_grpo", "reinforce_plus_plus": "reinforce++"}.get(wanted, wanted)
    for known in RECIPES:
        if _plain(known) == wanted:
            return known
    near = get_close_matches(wanted, RECIPES, 1)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(RECIPES)}"
    raise KeyError(f"no recipe is called {name!r}; {hint}")


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")
