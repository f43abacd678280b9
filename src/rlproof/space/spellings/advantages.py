"""Spellings of points that are about how rewards become advantages."""

from __future__ import annotations

from collections.abc import Mapping

from rlproof.space.spellings.notes import TRL_TOKENS, swift_tokens, verl_tokens
from rlproof.space.spellings.record import Spelling

_DIVIDES_BY_N = "The whitening divides by n, not n − 1."

SPELLINGS: Mapping[str, tuple[Spelling, ...]] = {
    "rloo": (
        Spelling(
            "verl",
            "algorithm.adv_estimator='rloo', algorithm.use_kl_in_reward=True, "
            "algorithm.kl_penalty='kl', algorithm.kl_ctrl.kl_coef=0.05, loss_mode='gpg', "
            "loss_agg_mode='seq-mean-token-sum'",
            "0.5.0",
            None,
            "loss_mode='gpg' is the plain log-prob loss; with the default it is a clipped ratio. A "
            "group of one keeps its reward. Elsewhere the name means less: TRL's RLOOTrainer "
            "(0.22.0 on) clips the ratio of whole rows and agrees on the first update only; "
            "OpenRLHF's rloo and SkyRL's are the baseline with a clipped token ratio, and OpenRLHF "
            "0.5.6-0.8.4 whitens it; ms-swift's divides by the std unless scale_rewards='none'; "
            "NeMo-RL takes a mean over tokens or rows.",
        ),
    ),
    "reinforce++": (
        Spelling(
            "verl",
            "algorithm.adv_estimator='reinforce_plus_plus', algorithm.gamma=1, "
            "algorithm.use_kl_in_reward=True, algorithm.kl_penalty='kl', "
            "algorithm.kl_ctrl.kl_coef=0.01, loss_agg_mode='token-mean', clip_ratio_c=1e9",
            "0.8.0",
            None,
            f"{verl_tokens('0.4.0')} To 0.8.0 tokens before a masked span lose the reward.",
        ),
        Spelling(
            "OpenRLHF",
            "--algo.advantage.estimator reinforce --algo.advantage.gamma 1.0 "
            "--algo.kl.init_coef 0.01",
            "0.10.4",
            None,
            f"{_DIVIDES_BY_N} From 0.7.0 with the count of the micro-batch, and in 0.10.3 of all "
            "ranks.",
        ),
        Spelling(
            "SkyRL",
            "advantage_estimator='reinforce++', use_kl_in_reward=True, use_kl_loss=False, "
            "kl_loss_coef=0.01, kl_estimator_type='k1'",
            "skyrl 0.2.0",
            None,
            "From skyrl-train 0.1.0 by the micro-batch. Tokens before a masked span lose the "
            "reward.",
        ),
        Spelling(
            "slime",
            "--advantage-estimator reinforce_plus_plus --normalize-advantages --kl-coef 0.01 "
            "--calculate-per-token-loss",
            "≤ v0.1.0",
            None,
            "The whitening was read in the newest snapshot only. NeMo-RL's reinforce_plus_plus "
            "takes the KL off the advantage of its own token, not off the return: the point only "
            "without KL.",
            "git tag",
        ),
    ),
    "reinforce++-baseline": (
        Spelling(
            "verl",
            "algorithm.adv_estimator='reinforce_plus_plus_baseline', use_kl_loss=True, "
            "kl_loss_coef=0.04, kl_loss_type='mse', loss_agg_mode='token-mean', clip_ratio_c=1e9",
            "0.8.0",
            None,
            f"{verl_tokens('0.4.0')} A group of one keeps its reward.",
        ),
        Spelling(
            "OpenRLHF",
            "--algo.advantage.estimator reinforce_baseline --algo.kl.use_loss "
            "--algo.kl.estimator k2 --algo.kl.init_coef 0.04",
            "0.10.4",
            None,
            f"{_DIVIDES_BY_N} From 0.7.0 with the count of the micro-batch, and in 0.10.3 of all "
            "ranks; in 0.6.1-0.6.4 with a mean over rows.",
        ),
        Spelling(
            "NeMo-RL",
            "adv_estimator.name='reinforce_plus_plus', minus_baseline=True, "
            "reference_policy_kl_type='k2', reference_policy_kl_penalty=0.04, "
            "token_level_loss=True",
            "v0.6.0",
            None,
            _DIVIDES_BY_N,
            "git tag",
        ),
        Spelling(
            "slime",
            "--advantage-estimator reinforce_plus_plus_baseline --normalize-advantages "
            "--use-kl-loss --kl-loss-type k2 --kl-loss-coef 0.04 --calculate-per-token-loss",
            "≤ v0.1.0",
            None,
            "The whitening was read in the newest snapshot only. ms-swift's "
            "advantage_estimator='reinforce_plus_plus' (3.10.0 on) divides by a std over rows: "
            "another point.",
            "git tag",
        ),
    ),
    "maxrl": (
        Spelling(
            "SkyRL",
            "advantage_estimator='maxrl', loss_reduction='sequence_mean', use_kl_loss=False",
            "skyrl 0.2.0",
            None,
            "A negative mean turns the signs, and a group of one keeps its reward. prime-rl's "
            "algo.type='max_rl' (v0.7.0 on) is this advantage, 0 where the mean is not positive, "
            "with prime-rl's own loss.",
        ),
    ),
    "opo": (
        Spelling(
            "verl",
            "algorithm.adv_estimator='opo', loss_mode='gpg', loss_agg_mode='token-mean'",
            "0.8.0",
            None,
            "With the default loss_mode a clipped ratio. A group of one keeps its reward. "
            f"{verl_tokens('0.5.0')}",
        ),
    ),
    "gdpo": (
        Spelling(
            "TRL",
            "multi_objective_aggregation='normalize_then_sum', loss_type='dapo', beta=0",
            "0.27.0",
            None,
            f"scale_rewards is ignored. Rewards may be missing from 1.6.0 on. {TRL_TOKENS}",
        ),
        Spelling(
            "ms-swift",
            "scale_rewards='gdpo', loss_type='dapo', beta=0",
            "4.6.0",
            None,
            f"Not with advantage_estimator='reinforce_plus_plus'. {swift_tokens('4.0.0')}",
        ),
        Spelling(
            "NeMo-RL",
            "adv_estimator.name='gdpo', use_leave_one_out_baseline=False, token_level_loss=True, "
            "reference_policy_kl_penalty=0",
            "v0.6.0",
            None,
            "By default with the mean and std of the other completions. Weights of the rewards "
            "only after v0.7.0. verl's adv_estimator='gdpo' (0.7.1 on) whitens over tokens, where "
            "a row counts by its length: another point.",
            "git tag",
        ),
    ),
    "nemo-grpo": (
        Spelling(
            "NeMo-RL",
            "use_leave_one_out_baseline=True, normalize_rewards=True, token_level_loss=True, "
            "reference_policy_kl_penalty=0",
            "v0.4.0",
            None,
            "The defaults, but for a KL of 0.01. To v0.3.0 the std is the population's, "
            "without eps.",
            "git tag",
        ),
    ),
}
