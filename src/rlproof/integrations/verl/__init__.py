"""verl: record what its losses are given, and train on the objectives of `rlproof.space`.

    export VERL_USE_EXTERNAL_MODULES=rlproof.integrations.verl
    python -m verl.trainer.main_ppo algorithm.adv_estimator=rlproof:dapo \
        actor_rollout_ref.actor.policy_loss.loss_mode=rlproof:dapo …

Importing this package registers, in verl's own registries,

- `rlproof_` and a name: the policy loss that verl has under that name, recorded (`recording`);
- `rlproof:` and a name of `rlproof.space.published`: its policy loss (`objective`) and its
  advantage estimator (`advantages`).

Read against verl 0.9.1.
"""

from rlproof.integrations.verl.advantages import advantage_estimator
from rlproof.integrations.verl.objective import policy_loss
from rlproof.integrations.verl.recording import PREFIX, record_loss, recording
from rlproof.integrations.verl.recording import register as _record_all
from rlproof.integrations.verl.registry import register_objective, register_published

__all__ = [
    "PREFIX", "advantage_estimator", "policy_loss", "record_loss", "recording",
    "register_objective", "register_published",
]  # fmt: skip

_record_all()
register_published()
