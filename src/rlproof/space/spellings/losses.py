"""Spellings of points that are about what the loss is divided by."""

from __future__ import annotations

from collections.abc import Mapping

from rlproof.space.spellings.notes import LIGER_TOKENS, NEMO, TRL_TOKENS, skyrl_tokens, swift_tokens
from rlproof.space.spellings.record import Spelling

SPELLINGS: Mapping[str, tuple[Spelling, ...]] = {
    "grpo": (
        Spelling(
            "TRL",
            "loss_type='grpo', beta=0.04",
            "0.17.0",
            "0.21.0",
            "0.14.0-0.15.2: the same mean without a clip. 0.16.x: a token mean.",
        ),
        Spelling(
            "TRL",
            "loss_type='grpo', beta=0.04, scale_rewards='none'",
            "0.22.0",
            "0.22.1",
            "Here 'none' divides by the std of the group, and the default 'group' by nothing.",
            "executed",
        ),
        Spelling(
            "TRL",
            "loss_type='grpo', beta=0.04",
            "0.22.2",
            "1.9.2",
            "use_bias_correction_kl, off by default, exists from 0.26.0.",
            "executed",
        ),
        Spelling(
            "TRL",
            "loss_type='grpo', beta=0.04, use_bias_correction_kl=False",
            "1.10.0",
            None,
            "The default True weighs the KL by the ratio.",
        ),
        Spelling(
            "Liger Kernel",
            "loss_type='grpo', beta=0.04",
            "0.5.7",
            None,
            "0.5.6 has only the token mean. The default is 'bnpo' to 0.6.3, 'dapo' after.",
        ),
        Spelling(
            "verl",
            "loss_agg_mode='seq-mean-token-mean', use_kl_loss=True, kl_loss_coef=0.04, "
            "kl_loss_type='low_var_kl', clip_ratio_c=1e9",
            "0.4.0",
            None,
            "A row without tokens is NaN to 0.6.0 and is left out in 0.6.1. k3 is clamped at 10.",
        ),
        Spelling(
            "OpenRLHF",
            "--advantage_estimator group_norm --use_kl_loss --kl_estimator k3 --init_kl_coef 0.04",
            "0.6.1",
            "0.6.4",
            "Token mean without a switch 0.7.0-0.11.1. In 0.11.2 --actor.loss_agg_mode "
            "seq-mean-token-mean leaves the KL a token mean: the point only without KL.",
        ),
        Spelling(
            "SkyRL",
            "loss_reduction='sequence_mean', use_kl_loss=True, kl_loss_coef=0.04, "
            "kl_estimator_type='k3'",
            "≤ skyrl-train 0.1.0",
            None,
            "The KL is a mean over rows whatever loss_reduction says.",
        ),
        Spelling(
            "ms-swift",
            "loss_type='grpo', beta=0.04",
            "3.4.0",
            None,
            "loss_type is new in 3.4.0. In 4.x k3 is clamped at 10.",
        ),
        Spelling("Oat", "critic_type='grpo', beta=0.04", "0.0.9", "0.2.0"),
        Spelling(
            "Oat",
            "critic_type='grpo', beta=0.04, tis_c=None",
            "0.2.1",
            None,
            "tis_c=2.0 by default: a truncated weight for the sampler.",
        ),
        Spelling(
            "Unsloth", "loss_type='grpo', beta=0.04", "2025.5.11", None, "2025.5.6 lacks the names."
        ),
        Spelling(
            "NeMo-RL",
            "token_level_loss=False, use_leave_one_out_baseline=False, normalize_rewards=True, "
            "reference_policy_kl_penalty=0.04, reference_policy_kl_type='k3'",
            "v0.4.0",
            None,
            "v0.1.0-v0.3.0: population std, without eps.",
            "git tag",
        ),
        Spelling(
            "slime",
            "--advantage-estimator grpo --use-kl-loss --kl-loss-type k3 --kl-loss-coef 0.04",
            "≤ v0.1.0",
            None,
            "The default type is k1.",
            "git tag",
        ),
        Spelling(
            "tunix",
            "loss_agg_mode='sequence-mean-token-mean'",
            "v0.1.4",
            "v0.1.6",
            "The mean of v0.0.1-v0.1.3 is the same and has no name.",
            "git tag",
        ),
        Spelling(
            "tunix",
            "loss_agg_mode='sequence-mean-token-mean', kl_loss_mode='low_var_kl'",
            "v0.1.7",
            None,
            "The default kl_loss_mode='kl' is k1.",
            "git tag",
        ),
    ),
    "dapo": (
        Spelling(
            "TRL",
            "loss_type='dapo', epsilon=0.2, epsilon_high=0.28, beta=0",
            "0.22.2",
            None,
            f"{TRL_TOKENS} To 1.8.0 that count has truncated completions and tool tokens in it. "
            "0.22.0 and 0.22.1 have the name, and leave out the std.",
            "executed",
        ),
        Spelling(
            "Liger Kernel",
            "loss_type='dapo', epsilon_high=0.28, beta=0",
            "0.8.1",
            None,
            f"{LIGER_TOKENS} 0.6.4-0.8.0: always so.",
        ),
        Spelling(
            "verl",
            "loss_agg_mode='token-mean', clip_ratio_low=0.2, clip_ratio_high=0.28, "
            "clip_ratio_c=1e9, trainer.use_legacy_worker_impl='disable'",
            "0.7.0",
            "0.7.1",
            "With the default workers of 0.7.x, and from 0.4.0 to 0.6.1: by the micro-batch.",
        ),
        Spelling(
            "verl",
            "loss_agg_mode='token-mean', clip_ratio_low=0.2, clip_ratio_high=0.28, "
            "clip_ratio_c=1e9",
            "0.8.0",
        ),
        Spelling(
            "OpenRLHF",
            "--algo.advantage.estimator group_norm --actor.eps_clip_low_high 0.2 0.28 "
            "--algo.kl.init_coef 0",
            "0.10.4",
            None,
            "From 0.8.2 with the count of the micro-batch, and in 0.10.3 of all ranks.",
        ),
        Spelling(
            "SkyRL",
            "loss_reduction='token_mean', eps_clip_high=0.28, use_kl_loss=False",
            "skyrl 0.2.0",
            None,
            skyrl_tokens("skyrl-train 0.1.0"),
        ),
        Spelling(
            "ms-swift",
            "loss_type='dapo', epsilon_high=0.28, beta=0",
            "4.6.0",
            None,
            swift_tokens("3.11.0"),
        ),
        Spelling(
            "Unsloth",
            "loss_type='dapo', epsilon_high=0.28, beta=0",
            "2025.10.13",
            None,
            "2026.10.9 rescales by steps_per_generation; since when was not found.",
        ),
        Spelling(
            "NeMo-RL",
            f"token_level_loss=True, ratio_clip_max=0.28, {NEMO}",
            "v0.4.0",
            None,
            "v0.3.0: the same mean, a population std.",
            "git tag",
        ),
        Spelling(
            "slime",
            "--calculate-per-token-loss --eps-clip-high 0.28",
            "≤ v0.1.0",
            None,
            "",
            "git tag",
        ),
        Spelling(
            "ROLL",
            "adv_estimator='grpo', loss_agg_mode='token-mean', use_pg_clip_range=True, "
            "pg_clip_low=0.2, pg_clip_high=0.28",
            "v0.2.0",
            None,
            "v0.1.x: by the micro-batch. The sum is not masked: A has to be 0 on dropped tokens.",
            "git tag",
        ),
        Spelling(
            "tunix",
            "DAPOConfig",
            "v0.1.4",
            None,
            "Whether the count is that of a micro-batch or of a step was not found.",
            "git tag",
        ),
    ),
    "bnpo": (
        Spelling(
            "TRL",
            "loss_type='bnpo', beta=0",
            "0.17.0",
            "0.21.0",
            "The default in these. 0.16.x: the same without a name.",
        ),
        Spelling(
            "TRL",
            "loss_type='bnpo', beta=0, scale_rewards='none'",
            "0.22.0",
            "0.22.1",
            "Here 'none' divides by the std of the group, and the default 'group' by nothing.",
            "executed",
        ),
        Spelling("TRL", "loss_type='bnpo', beta=0", "0.22.2", None, "", "executed"),
        Spelling(
            "Liger Kernel",
            "loss_type='bnpo', beta=0",
            "0.5.7",
            None,
            "0.5.6: the same without a name.",
        ),
        Spelling(
            "verl",
            "loss_agg_mode='token-mean', clip_ratio_c=1e9",
            "0.4.0",
            "0.7.1",
            "In 0.7.x with the default workers: see dapo.",
        ),
        Spelling(
            "OpenRLHF", "--advantage_estimator group_norm --init_kl_coef 0", "0.7.0", "0.10.1"
        ),
        Spelling(
            "OpenRLHF",
            "--algo.advantage.estimator group_norm --algo.kl.init_coef 0",
            "0.10.2",
            "0.10.2",
            "0.10.3 counts tokens over all ranks.",
        ),
        Spelling(
            "SkyRL",
            "loss_reduction='token_mean', use_kl_loss=False",
            "≤ skyrl-train 0.1.0",
            "skyrl 0.1.0",
        ),
        Spelling("SkyRL", "loss_reduction='token_mean_legacy', use_kl_loss=False", "skyrl 0.2.0"),
        Spelling("ms-swift", "loss_type='bnpo', beta=0", "3.4.0"),
        Spelling(
            "Unsloth",
            "loss_type='bnpo', beta=0",
            "2025.5.11",
            None,
            "2026.10.9 counts locally even where it is given a global count; whether older "
            "releases do was not found.",
        ),
    ),
    "dr_grpo": (
        Spelling(
            "TRL",
            "loss_type='dr_grpo', scale_rewards=False, beta=0",
            "0.17.0",
            "0.21.0",
            "The constant is max_completion_length, in all releases.",
        ),
        Spelling(
            "TRL",
            "loss_type='dr_grpo', scale_rewards='group', beta=0",
            "0.22.0",
            "0.22.1",
            "Here 'group' divides by nothing, and 'none' by the std of the group.",
            "executed",
        ),
        Spelling(
            "TRL",
            "loss_type='dr_grpo', scale_rewards='none', beta=0",
            "0.22.2",
            None,
            "",
            "executed",
        ),
        Spelling("Liger Kernel", "loss_type='dr_grpo', max_completion_length=L, beta=0", "0.5.7"),
        Spelling(
            "verl",
            "loss_agg_mode='seq-mean-token-sum-norm', loss_scale_factor=L, "
            "norm_adv_by_std_in_grpo=False, clip_ratio_c=1e9, "
            "trainer.use_legacy_worker_impl='disable'",
            "0.7.1",
            "0.7.1",
            "0.4.0-0.7.0 do not divide by the rows. The default workers of 0.7.1 ignore L and "
            "take the padded width.",
            "executed",
        ),
        Spelling(
            "verl",
            "loss_agg_mode='seq-mean-token-sum-norm', loss_scale_factor=L, "
            "norm_adv_by_std_in_grpo=False, clip_ratio_c=1e9",
            "0.8.0",
            None,
            "A group of one keeps its reward.",
        ),
        Spelling(
            "SkyRL",
            "loss_reduction='seq_mean_token_sum_norm', max_seq_len=L, grpo_norm_by_std=False, "
            "use_kl_loss=False",
            "≤ skyrl-train 0.1.0",
        ),
        Spelling(
            "ms-swift",
            "loss_type='dr_grpo', scale_rewards=False, beta=0",
            "3.4.0",
            "3.9.3",
        ),
        Spelling("ms-swift", "loss_type='dr_grpo', scale_rewards='none', beta=0", "3.10.0"),
        Spelling(
            "Oat",
            "critic_type='drgrpo', beta=0",
            "0.0.9",
            "0.2.0",
            "0.0.7: critic_type='grpo', sum_loss=True still divides by the std.",
        ),
        Spelling(
            "Oat",
            "critic_type='drgrpo', beta=0, tis_c=None",
            "0.2.1",
            None,
            "tis_c=2.0 by default: a truncated weight for the sampler.",
        ),
        Spelling(
            "Unsloth",
            "loss_type='dr_grpo', scale_rewards='none', beta=0",
            "2025.5.11",
            None,
            "scale_rewards is that of the TRL that is installed: see there.",
        ),
        Spelling("tunix", "DrGRPOConfig", "v0.1.6", None, "", "git tag"),
    ),
    "prompt-mean": (
        Spelling(
            "SkyRL",
            "loss_reduction='prompt_mean', use_kl_loss=False",
            "skyrl 0.3.0",
            None,
            "Prompts and tokens are counted over the mini-batch.",
        ),
    ),
}
