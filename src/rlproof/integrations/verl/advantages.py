"""Advantage estimators of verl that compute the advantages of an objective.

verl calls an estimator once for all completions of a step, before they are cut into mini-batches
and shared among processes. Shapes: N completions, T slots.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rlproof.errors import ConfigError
from rlproof.integrations.verl.serving import advantage_contradiction, advantage_refusal
from rlproof.space.advantages import advantages
from rlproof.space.objective import Objective
from rlproof.space.shaping import of_token_rewards

Estimator = Callable[..., tuple[Any, Any]]


def advantage_estimator(objective: Objective) -> Estimator:
    """An estimator for verl's `register_adv_est`.

    The group of a row is its `uid`. `gamma` and `norm_adv_by_std_in_grpo` have no part in it. A
    divergence in the reward is taken off by verl, and its options must be the objective's.

    The function raises ConfigError where verl can't serve the objective, or an option contradicts
    it. Advantages are also what it returns as returns: there is no critic.
    """
    refused = advantage_refusal(objective)

    def estimate(
        token_level_rewards: Any,
        response_mask: Any,
        config: Any = None,
        index: Any = None,
        **_others: Any,
    ) -> tuple[Any, Any]:
        wrong = refused or advantage_contradiction(objective, config)
        if not wrong and index is None:
            wrong = "verl handed over no uid, which says the prompt of each row"
        if wrong:
            raise ConfigError(f"advantages of objective {objective.name!r}: {wrong}")
        made_NT = _made(objective, token_level_rewards.double(), response_mask.double(), index)
        made_NT = made_NT.to(token_level_rewards.dtype)
        return made_NT, made_NT.clone()

    estimate.__name__ = estimate.__qualname__ = f"rlproof:{objective.name}"
    return estimate


def _made(how: Objective, rewards_NT: Any, mask_NT: Any, index: Any) -> Any:
    """Advantages (N, T), 0 on padding."""
    kl = how.divergence
    if kl.place == "token-reward" and kl.coefficient:
        return of_token_rewards(rewards_NT, mask_NT, how.advantage)
    made_N = advantages(rewards_NT.sum(1), index, how.advantage, mask_NT.sum(1))
    return made_N[:, None] * mask_NT
