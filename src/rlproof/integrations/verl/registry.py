"""Objectives under names that a configuration of verl can say."""

from __future__ import annotations

from verl.trainer.ppo import core_algos

from rlproof.errors import ConfigError
from rlproof.integrations.verl.advantages import advantage_estimator
from rlproof.integrations.verl.objective import policy_loss, recorded
from rlproof.integrations.verl.serving import loss_refusal
from rlproof.space.objective import Objective
from rlproof.space.published import OBJECTIVES

MARK = "rlproof:"
"""What names of objectives begin with; `rlproof_` is the recording of a loss of verl's."""


def register_objective(objective: Objective) -> str:
    """Register the policy loss and the advantage estimator of a point of the space.

    For a module of your own in VERL_USE_EXTERNAL_MODULES:

        from rlproof.integrations.verl import register_objective
        from rlproof.space.published import OBJECTIVES
        register_objective(OBJECTIVES["dapo"].objective.but(name="mine", temperature=1.0))

    Returns:
        `rlproof:` and the objective's name, for `policy_loss.loss_mode` and
        `algorithm.adv_estimator`. An objective whose advantages verl can't serve has an estimator
        that says so when it is called.

    Raises:
        ConfigError: a coordinate of the loss that verl's signature can't serve, or a name that
            another objective has.
    """
    if reason := loss_refusal(objective):
        raise ConfigError(f"objective {objective.name!r}: {reason}")
    known = OBJECTIVES.get(objective.name)
    if known is not None and known.objective != objective:
        raise ConfigError(
            f"objective {objective.name!r}: a published objective has this name; give yours "
            "another one with .but(name=…)"
        )
    return _register(objective)


def register_published() -> list[str]:
    """Register every published objective; the names.

    One that verl can't serve says why when verl calls it.
    """
    return [_register(published.objective) for published in OBJECTIVES.values()]


def _register(objective: Objective) -> str:
    name = MARK + objective.name
    core_algos.register_policy_loss(name)(recorded(policy_loss(objective), objective))
    core_algos.ADV_ESTIMATOR_REGISTRY.pop(name, None)  # it refuses to replace
    core_algos.register_adv_est(name)(advantage_estimator(objective))
    return name
