"""What a declared recipe asks for, as facts for the detectors."""

from __future__ import annotations

import re
from typing import Any

from rlproof.errors import ConfigError
from rlproof.faults.seen import AdvantagesSeen, LossSeen
from rlproof.judge.axes import is_published
from rlproof.read.targets import Script, Target
from rlproof.space import recipes

_DOC_TOKENS = (
    r"(averag|mean)\w*\s+over\s+(all\s+|the\s+)*(real|valid|response|completion)?\s*tokens"
)
_OF_THE_LOSS = ("level", "ratio", "surrogate", "divergence")
_OF_THE_ADVANTAGES = ("baseline", "scale")
_AXES = {"ratio", "surrogate", "divergence"}


def recipe_called(name: str | None) -> str | None:
    """The canonical name of a declared recipe; None for none or `auto`.

    Raises:
        ConfigError: no such recipe.
    """
    if name is None or name == "auto":
        return None
    try:
        return recipes.normalise(name)
    except KeyError as error:
        raise ConfigError(str(error.args[0])) from None


def recipe_of(script: Script, objective: str | None, default: str | None) -> str | None:
    """The recipe that a script is held to: the command line's, its own, or the project's.

    Raises:
        ConfigError: no such recipe.
    """
    return recipe_called(objective or script.objective or default)


def of_loss(recipe: str | None, target: Target, seen: LossSeen) -> dict[str, Any]:
    """The aggregations that the recipe takes, and the other coordinates that differ from it.

    A docstring that promises a mean over the tokens is a declaration too.
    """
    if recipe is None:
        return {}
    facts: dict[str, Any] = {"declared_recipe": recipe}
    if allowed := recipes.DECLARED_AGGREGATIONS.get(recipe):
        said = re.search(_DOC_TOKENS, target.doc, re.IGNORECASE)
        facts["declared_aggregations"] = (*allowed, "token-mean") if said else allowed
    return facts | {"undeclared": _differences(recipe, _OF_THE_LOSS, dict(seen.point))}


def of_advantages(recipe: str | None, seen: AdvantagesSeen) -> dict[str, Any]:
    """The coordinates of the advantages that differ from the recipe."""
    if recipe is None:
        return {}
    differences = _differences(recipe, _OF_THE_ADVANTAGES, dict(seen.point))
    return {"declared_recipe": recipe, "undeclared": differences}


def _differences(
    recipe: str, axes: tuple[str, ...], point: dict[str, str | float]
) -> list[tuple[str, str, tuple[str, ...]]]:
    """(axis, value, allowed) of every published value that the recipe does not take.

    A faulty value has a finding of its own.
    """
    found = []
    for axis in axes:
        allowed = recipes.RECIPES[recipe].coordinates.get(axis)
        value = str(point.get(axis, ""))
        published = axis not in _AXES or is_published(axis, value)
        if allowed and value and published and value not in allowed:
            found.append((axis, value, allowed))
    return found
