"""Spellings of corrections for the sampler, trust regions and penalties on drift."""

from __future__ import annotations

from collections.abc import Mapping

from rlproof.space.spellings.notes import NEMO, TRL_TOKENS, swift_tokens, verl_tokens
from rlproof.space.spellings.record import Spelling

_OLD_FLAGS = "--advantage_estimator group_norm --init_kl_coef 0 --enable_vllm_is_correction"
_FLAGS = (
    "--algo.advantage.estimator group_norm --algo.kl.init_coef 0 "
    "--algo.advantage.is_correction_enable"
)
_LEVEL = "--algo.advantage.estimator group_norm --algo.kl.init_coef 0"
_OPENRLHF_TOKENS = "To 0.10.2 with the count of the micro-batch, and in 0.10.3 of all ranks."
_NEMO = f"use_importance_sampling_correction=True, token_level_loss=True, {NEMO}"
_RATIO = "The ratio is to the sampler in bypass mode only."

SPELLINGS: Mapping[str, tuple[Spelling, ...]] = {
    "grpo-tis": (
        Spelling(
            "TRL",
            "vllm_importance_sampling_correction=True, vllm_importance_sampling_cap=2.0, "
            "loss_type='dapo', beta=0",
            "0.23.0",
            "0.25.1",
            f"Both are the defaults here. {TRL_TOKENS}",
        ),
        Spelling(
            "TRL",
            "vllm_importance_sampling_mode='token_truncate', vllm_importance_sampling_cap=2.0, "
            "loss_type='dapo', beta=0",
            "0.26.0",
            "1.5.1",
            f"The defaults are 'sequence_mask' and 3.0. {TRL_TOKENS}",
        ),
        Spelling(
            "TRL",
            "vllm_importance_sampling_mode='token_truncate', "
            "vllm_importance_sampling_clip_max=2.0, loss_type='dapo', beta=0",
            "1.6.0",
            None,
            f"The former name of the cap is deprecated. {TRL_TOKENS}",
        ),
        Spelling(
            "verl",
            "algorithm.rollout_is=True, algorithm.rollout_is_level='token', "
            "algorithm.rollout_is_mode='truncate', algorithm.rollout_is_threshold=2.0, "
            "algorithm.rollout_is_veto_threshold=null, loss_agg_mode='token-mean', "
            "clip_ratio_c=1e9",
            "0.6.0",
            "0.6.0",
            "By the micro-batch. The veto is 1e-4 by default and drops whole rows.",
        ),
        Spelling(
            "verl",
            "algorithm.rollout_correction.rollout_is='token', "
            "algorithm.rollout_correction.rollout_is_threshold=2.0, loss_agg_mode='token-mean', "
            "clip_ratio_c=1e9",
            "0.8.0",
            None,
            verl_tokens("0.6.1"),
        ),
        Spelling(
            "OpenRLHF",
            f"{_OLD_FLAGS} --vllm_is_truncated_threshold 2",
            "0.8.9",
            "0.9.0",
            "By the micro-batch. From 0.8.10 for policy_loss_type ppo only.",
        ),
        Spelling(
            "OpenRLHF",
            f"{_OLD_FLAGS} --vllm_is_truncated_threshold 0 2",
            "0.9.1",
            "0.10.1",
            "By the micro-batch. Two bounds from here on, by default 0.5 and 5.",
        ),
        Spelling(
            "OpenRLHF",
            f"{_FLAGS} --algo.advantage.is_correction_threshold 0 2",
            "0.10.2",
            "0.11.1",
            _OPENRLHF_TOKENS,
        ),
        Spelling(
            "OpenRLHF",
            f"{_LEVEL} --algo.advantage.is_correction_level token "
            "--algo.advantage.is_correction_mode clip "
            "--algo.advantage.is_correction_threshold 0 2",
            "0.11.2",
            None,
            "The default mode is 'mask'.",
        ),
        Spelling(
            "SkyRL",
            "use_tis=True, tis_imp_ratio_cap=2.0, use_kl_loss=False",
            "≤ skyrl-train 0.1.0",
            "skyrl-train 0.3.1",
            "By the micro-batch. For the PPO loss only: not gspo, cispo or sapo.",
        ),
        Spelling(
            "SkyRL",
            "off_policy_correction.tis_ratio_type='token', "
            "off_policy_correction.token_tis_ratio_clip_high=2.0, use_kl_loss=False",
            "skyrl 0.2.0",
            None,
            "skyrl 0.1.0: by the micro-batch. For all losses.",
        ),
        Spelling(
            "ms-swift",
            "rollout_importance_sampling_mode='token_truncate', "
            "rollout_importance_sampling_threshold=2.0, loss_type='dapo', beta=0",
            "4.6.0",
            None,
            f"The weight multiplies a KL too. {swift_tokens('3.11.0')}",
        ),
        Spelling(
            "NeMo-RL",
            f"{_NEMO}, truncated_importance_sampling_ratio=2.0",
            "v0.4.0",
            "v0.5.0",
            "",
            "git tag",
        ),
        Spelling(
            "NeMo-RL",
            f"{_NEMO}, truncated_importance_sampling_ratio=2.0, "
            "truncated_importance_sampling_type='tis'",
            "v0.6.0",
            None,
            "The type is mandatory.",
            "git tag",
        ),
        Spelling(
            "slime",
            "--use-tis --tis-clip 2.0 --tis-clip-low 0 --calculate-per-token-loss",
            "≤ v0.1.0",
            None,
            "ROLL's pg_variant='tis' truncates π/π_old, not the weight for the sampler.",
            "git tag",
        ),
    ),
    "icepop": (
        Spelling(
            "TRL",
            "vllm_importance_sampling_mode='token_mask', vllm_importance_sampling_clip_min=0.5, "
            "vllm_importance_sampling_clip_max=5.0, loss_type='dapo', beta=0",
            "1.6.0",
            None,
            f"0.26.0-1.5.1 have the upper bound only. {TRL_TOKENS}",
        ),
        Spelling(
            "verl",
            "algorithm.rollout_is=True, algorithm.rollout_is_level='token', "
            "algorithm.rollout_is_mode='mask', algorithm.rollout_is_threshold=5.0, "
            "algorithm.rollout_is_threshold_lower=0.5, "
            "algorithm.rollout_is_veto_threshold=null, loss_agg_mode='token-mean', "
            "clip_ratio_c=1e9",
            "0.6.0",
            "0.6.0",
            "By the micro-batch. 0.6.1-0.7.1 can only reject: what is dropped leaves the "
            "denominator.",
        ),
        Spelling(
            "verl",
            "algorithm.rollout_correction.rollout_is='token', "
            "algorithm.rollout_correction.rollout_is_threshold='0.5_5.0', "
            "loss_agg_mode='token-mean', clip_ratio_c=1e9",
            "0.8.0",
        ),
        Spelling(
            "OpenRLHF",
            f"{_OLD_FLAGS} --use_icepop",
            "0.9.1",
            "0.9.2",
            "By the micro-batch. The bounds are the default.",
        ),
        Spelling(
            "OpenRLHF",
            f"{_OLD_FLAGS} --vllm_is_correction_type icepop",
            "0.9.3",
            "0.10.1",
            "By the micro-batch.",
        ),
        Spelling(
            "OpenRLHF",
            f"{_FLAGS} --algo.advantage.is_correction_type icepop",
            "0.10.2",
            "0.11.1",
            f"{_OPENRLHF_TOKENS} To 0.11.0 an infinite ratio gives NaN.",
        ),
        Spelling(
            "OpenRLHF",
            f"{_LEVEL} --algo.advantage.is_correction_level token",
            "0.11.2",
            None,
            "Mode 'mask' and the bounds 0.5 and 5 are the default.",
        ),
        Spelling(
            "SkyRL",
            "off_policy_correction.tis_ratio_type='token', token_tis_ratio_clip_high=5.0, "
            "token_mask_is_threshold_low=0.5, token_mask_is_threshold_high=5.0, use_kl_loss=False",
            "skyrl 0.2.0",
            None,
            "In skyrl 0.1.0 what is dropped leaves the denominator. ms-swift's 'token_mask' has "
            "the upper bound only: another point.",
        ),
        Spelling(
            "NeMo-RL",
            f"{_NEMO}, truncated_importance_sampling_type='icepop', "
            "truncated_importance_sampling_ratio_min=0.5, truncated_importance_sampling_ratio=5.0",
            "v0.6.0",
            None,
            "",
            "git tag",
        ),
        Spelling(
            "slime",
            "--use-tis --custom-tis-function-path "
            "slime.backends.megatron_utils.loss.icepop_function --tis-clip-low 0.5 "
            "--tis-clip 5.0 --calculate-per-token-loss",
            "v0.2.1",
            None,
            "The default bounds are 0 and 2.",
            "git tag",
        ),
    ),
    "seq-mask-tis": (
        Spelling(
            "OpenRLHF",
            f"{_OLD_FLAGS} --vllm_is_correction_type mis --vllm_is_truncated_threshold 0.5 2",
            "0.9.3",
            "0.9.3",
            "By the micro-batch.",
        ),
        Spelling(
            "OpenRLHF",
            f"{_OLD_FLAGS} --vllm_is_correction_type seq-mask-tis "
            "--vllm_is_truncated_threshold 0.5 2",
            "0.9.4",
            "0.10.1",
            "By the micro-batch.",
        ),
        Spelling(
            "OpenRLHF",
            f"{_FLAGS} --algo.advantage.is_correction_type seq-mask-tis "
            "--algo.advantage.is_correction_threshold 0.5 2",
            "0.10.2",
            "0.11.1",
            _OPENRLHF_TOKENS,
        ),
        Spelling(
            "OpenRLHF",
            f"{_LEVEL} --algo.advantage.is_correction_level seq "
            "--algo.advantage.is_correction_threshold 0.5 2",
            "0.11.2",
        ),
        Spelling(
            "SkyRL",
            "off_policy_correction.sequence_mask_metric='geometric', geo_mask_low=0.5, "
            "geo_mask_high=2.0, tis_ratio_type='token', token_tis_ratio_clip_high=1e9, "
            "use_kl_loss=False",
            "skyrl 0.2.0",
            None,
            "The default bounds are 0.99 and 1.01. In skyrl 0.1.0 what is dropped leaves the "
            "denominator, as in verl's rollout_rs.",
        ),
        Spelling(
            "NeMo-RL",
            f"{_NEMO}, truncated_importance_sampling_type='seq-mask-tis', "
            "truncated_importance_sampling_ratio_min=0.5, truncated_importance_sampling_ratio=2.0",
            "v0.6.0",
            None,
            "TRL's 'sequence_mask' compares and carries a product over the row; ms-swift's has "
            "the upper bound only: other points.",
            "git tag",
        ),
    ),
    "opsm": (
        Spelling(
            "TRL",
            "off_policy_mask_threshold=1e-4, vllm_importance_sampling_correction=False, "
            "loss_type='dapo', beta=0",
            "0.27.1",
            None,
            "0.27.0 compares with the old policy, not with the sampler, as later ones do where "
            f"generation is not by vLLM. {TRL_TOKENS}",
        ),
        Spelling(
            "Unsloth",
            "off_policy_mask_threshold=1e-4, loss_type='dapo', beta=0",
            "2026.2.1",
            None,
            "Calls the function of TRL, from 0.27.0 on: see there.",
        ),
        Spelling(
            "slime",
            "--use-opsm --opsm-delta 1e-4 --use-rollout-logprobs --calculate-per-token-loss",
            "v0.2.1",
            None,
            "The sampler stands in the ratio as well; without --use-rollout-logprobs the old "
            "policy stands in both. In ms-swift's off_policy_sequence_mask_delta (3.12.0 on) the "
            "dropped rows leave the denominator: another point.",
            "git tag",
        ),
    ),
    "dppo-tv": (
        Spelling(
            "SkyRL",
            "policy_loss_type='dppo', dppo.dppo_type='binary_tv', grpo_norm_by_std=False, "
            "use_kl_loss=False",
            "skyrl 0.3.0",
            None,
            "The ratio is to the sampler where its log-probs are there.",
        ),
        Spelling(
            "prime-rl",
            "trainer.loss.type='default', trainer.loss.kl_tau=0, without the zero-advantage filter",
            "v0.6.0",
            None,
            "The ratio is to the sampler. See prime-rl.",
            "git tag",
        ),
    ),
    "dppo-kl": (
        Spelling(
            "SkyRL",
            "policy_loss_type='dppo', dppo.dppo_type='binary_kl', dppo.delta_low=0.05, "
            "dppo.delta_high=0.05, grpo_norm_by_std=False, use_kl_loss=False",
            "skyrl 0.3.0",
            None,
            "The default bounds are 0.2, for both distances.",
        ),
    ),
    "dppo-tv-score": (
        Spelling(
            "verl",
            "loss_mode='dppo_tv', clip_ratio_low=0.2, clip_ratio_high=0.2, clip_ratio_c=20, "
            "norm_adv_by_std_in_grpo=False",
            "0.8.0",
            None,
            f"clip_ratio_c=3.0 by default. {verl_tokens('0.7.1')} {_RATIO}",
        ),
    ),
    "dppo-kl-score": (
        Spelling(
            "verl",
            "loss_mode='dppo_kl', clip_ratio_low=0.05, clip_ratio_high=0.05, clip_ratio_c=20, "
            "norm_adv_by_std_in_grpo=False",
            "0.8.0",
            None,
            f"The default bounds are 0.2 and clip_ratio_c=3.0. {verl_tokens('0.7.1')} {_RATIO}",
        ),
    ),
    "dro": (
        Spelling(
            "verl",
            "loss_mode='dro', dro_beta=0.1, norm_adv_by_std_in_grpo=False",
            "0.9.0",
            None,
            "dro_beta has no default. Weights for the sampler multiply both terms.",
        ),
        Spelling(
            "ROLL",
            "pg_variant='kimi15', adv_estimator='reinforce', norm_mean_type='group', "
            "loss_agg_mode='token-mean'",
            "v0.2.0",
            None,
            "v0.1.3: by the micro-batch. Only in ActorPGWorker (RLVR) and agentic_actor_pg_worker. "
            "τ = 0.1 is no declared option. tinker's loss_fn='dro' is a sum.",
            "git tag",
        ),
    ),
    "prime-rl": (
        Spelling(
            "prime-rl",
            "trainer.loss.type='default'",
            "v0.6.0",
            None,
            "From v0.5.1.dev38 with a divisor by rank, to v0.5.1.dev215. v0.5.0 drops tokens on "
            "both sides, whatever the sign of A. The filter of A = 0 is in the default filters to "
            "v0.8.0, and orchestrator.train.filter_zero_advantages from v0.8.1.dev40.",
            "git tag",
        ),
    ),
}
