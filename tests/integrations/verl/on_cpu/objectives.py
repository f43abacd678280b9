"""Published objectives train a tiny model under verl, with verl's own driver code.

    python objectives.py FOLDER [cut] [only NAME…]

Rewards, the divergence in them, advantages and the correction of the sampler are computed by
verl's functions, as its trainer calls them. One line for each objective, in JSON: what was refused,
or the norms of the gradients. With `cut`, in two micro-batches for each mini-batch.
"""

import json
import sys

import numpy as np
import tiny
import torch
from omegaconf import OmegaConf
from verl import DataProto
from verl.trainer.config import AlgoConfig
from verl.trainer.ppo.core_algos import FixedKLController
from verl.trainer.ppo.ray_trainer import apply_kl_penalty, compute_advantage
from verl.trainer.ppo.rollout_corr_helper import compute_rollout_correction_and_add_to_batch

from rlproof.errors import ConfigError
from rlproof.space.published import OBJECTIVES

folder, cut = sys.argv[1], "cut" in sys.argv
ONLY = sys.argv[sys.argv.index("only") + 1 :] if "only" in sys.argv else list(OBJECTIVES)
MODES = {
    "sequence-mean": "seq-mean-token-mean",
    "sequence-sum": "seq-mean-token-sum",
    "constant-per-sequence": "seq-mean-token-sum-norm",
}
KINDS = {"k1": "kl", "k2": "mse", "k3": "low_var_kl"}
CORRECTIONS = {"grpo-tis": 2.0, "icepop": "0.5_5.0"}


def actor_options(objective):
    """What a user of the objective sets beside its name."""
    kl = objective.divergence
    options = {"loss_scale_factor": tiny.T}
    if kl.place == "loss" and kl.target == "reference":
        options |= {
            "use_kl_loss": True, "kl_loss_coef": kl.coefficient,
            "kl_loss_type": KINDS[kl.estimator],
            "loss_agg_mode": MODES.get(objective.aggregation, "token-mean"),
        }  # fmt: skip
    return options


def algorithm(objective):
    kl = objective.divergence
    if kl.place not in ("reward", "token-reward"):
        return AlgoConfig()
    control = {"type": "fixed", "kl_coef": kl.coefficient}
    made = {"use_kl_in_reward": True, "kl_penalty": KINDS[kl.estimator], "kl_ctrl": control}
    return OmegaConf.create(made)


def prepared(name, objective, tensors, rewards, old, ref):
    """What verl's trainer does between the rollout and the update."""
    how, mask = algorithm(objective), tensors["response_mask"]
    last = mask.sum(1) - 1
    scores = torch.zeros(mask.shape).scatter(1, last[:, None], rewards[:, None])
    sampler = old + 0.2 * torch.sin(torch.arange(old.numel()).view(old.shape) * 1.7)
    data = DataProto.from_dict(
        {"token_level_scores": scores, "response_mask": mask, "old_log_probs": old,
         "ref_log_prob": ref, "rollout_log_probs": sampler},
        non_tensors={"uid": np.repeat([f"p{i}" for i in range(tiny.B // tiny.G)], tiny.G)},
    )  # fmt: skip
    data.batch["token_level_rewards"] = scores
    if how.get("use_kl_in_reward"):
        control = FixedKLController(how.kl_ctrl.kl_coef)
        data, _ = apply_kl_penalty(data, control, how.kl_penalty)
    if name in CORRECTIONS:
        settings = {"rollout_is": "token", "rollout_is_threshold": CORRECTIONS[name]}
        data, _ = compute_rollout_correction_and_add_to_batch(data, OmegaConf.create(settings))
    data = compute_advantage(data, adv_estimator=f"rlproof:{name}", config=how)
    keys = ("old_log_probs", "advantages", "ref_log_prob", "rollout_is_weights")
    return {**tensors, **{key: data.batch[key] for key in keys if key in data.batch}}


def norms(name, objective):
    """Of the gradient of every update; the first is of the same weights however it is cut."""
    micro = tiny.MICRO if cut else tiny.MINI
    training = tiny.worker(folder, f"rlproof:{name}", micro, **actor_options(objective))
    tensors, rewards = tiny.rollout(torch.Generator().manual_seed(1))
    old = tiny.scored(training, tensors)
    given = prepared(name, objective, tensors, rewards, old, old - 0.1)
    return tiny.update(training, given)["grad_norm"]


def main():
    tiny.start()
    tiny.model(folder)
    for name, published in ((name, OBJECTIVES[name]) for name in ONLY):
        try:
            said = {"norms": norms(name, published.objective)}
        except ConfigError as error:
            said = {"refused": str(error)}
        print(json.dumps({"name": name, **said}))


main()
