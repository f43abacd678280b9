"""Spellings of points whose ratio or weight is that of a whole row."""

from __future__ import annotations

from collections.abc import Mapping

from rlproof.space.spellings.notes import NEMO
from rlproof.space.spellings.record import Spelling

SPELLINGS: Mapping[str, tuple[Spelling, ...]] = {
    "gspo": (
        Spelling(
            "TRL",
            "importance_sampling_level='sequence', loss_type='grpo', beta=0, epsilon=3e-4, "
            "epsilon_high=4e-4",
            "0.20.0",
            "0.21.0",
            "The default loss_type is a token mean: the level alone is not GSPO.",
        ),
        Spelling(
            "TRL",
            "importance_sampling_level='sequence', loss_type='grpo', beta=0, epsilon=3e-4, "
            "epsilon_high=4e-4",
            "0.22.2",
            None,
            "0.22.0 and 0.22.1 leave out the std.",
            "executed",
        ),
        Spelling(
            "Liger Kernel",
            "importance_sampling_level='sequence', loss_type='grpo', beta=0, epsilon_low=3e-4, "
            "epsilon_high=4e-4",
            "0.6.3",
        ),
        Spelling(
            "OpenRLHF",
            "--policy_loss_type gspo --advantage_estimator group_norm --init_kl_coef 0 "
            "--eps_clip_low_high 3e-4 4e-4",
            "0.8.9",
            "0.10.1",
            "0.8.8 has the ratio with a token mean.",
        ),
        Spelling(
            "OpenRLHF",
            "--actor.policy_loss_type gspo --algo.advantage.estimator group_norm "
            "--algo.kl.init_coef 0 --actor.eps_clip_low_high 3e-4 4e-4",
            "0.10.2",
            None,
            "Without the correction for the sampler: from 0.8.10 it turns the ratio into "
            "π/π_sampler.",
        ),
        Spelling(
            "ms-swift",
            "importance_sampling_level='sequence', loss_type='grpo', beta=0, epsilon=3e-4, "
            "epsilon_high=4e-4",
            "3.7.0",
        ),
        Spelling(
            "Unsloth",
            "importance_sampling_level='sequence', loss_type='grpo', beta=0, epsilon=3e-4, "
            "epsilon_high=4e-4",
            "2025.9.7",
            None,
            "2025.9.4 lacks it; those between were not read.",
        ),
        Spelling(
            "NeMo-RL",
            "sequence_level_importance_ratios=True, token_level_loss=False, ratio_clip_min=3e-4, "
            f"ratio_clip_max=4e-4, {NEMO}",
            "v0.4.0",
            None,
            "AReaL's importance_sampling_level='sequence' (1.0.4) is a token mean: another point.",
            "git tag",
        ),
        Spelling(
            "slime",
            "--advantage-estimator gspo --eps-clip 3e-4 --eps-clip-high 4e-4",
            "≤ v0.1.0",
            None,
            "",
            "git tag",
        ),
    ),
    "gspo-token": (
        Spelling(
            "verl",
            "loss_mode='gspo', loss_agg_mode='seq-mean-token-mean', clip_ratio_low=3e-4, "
            "clip_ratio_high=4e-4",
            "0.6.0",
            None,
            "To 0.9.0 the mean is fixed and loss_agg_mode ignored; 0.9.1 follows loss_agg_mode, "
            "by default a token mean.",
            "executed",
        ),
        Spelling(
            "SkyRL",
            "policy_loss_type='gspo', loss_reduction='sequence_mean', eps_clip_low=3e-4, "
            "eps_clip_high=4e-4, use_kl_loss=False",
            "≤ skyrl-train 0.1.0",
            None,
            "The default loss_reduction is a token mean, with no more than a warning.",
        ),
        Spelling(
            "ms-swift",
            "importance_sampling_level='sequence_token', loss_type='grpo', beta=0, epsilon=3e-4, "
            "epsilon_high=4e-4",
            "3.8.0",
        ),
        Spelling(
            "tunix",
            "agentic GRPOConfig: loss_algo='gspo-token', beta=0, epsilon=3e-4, epsilon_high=4e-4",
            "v0.1.6",
            None,
            "The GRPOConfig outside agentic has this loss from v0.0.1 on, with one epsilon for "
            "both sides.",
            "git tag",
        ),
    ),
    "luspo": (
        Spelling(
            "TRL",
            "loss_type='luspo', importance_sampling_level='sequence', beta=0",
            "0.28.0",
            None,
            "The level is not forced: the default 'token' clips by token. To 1.9.2 a KL or token "
            "weights are averaged over padding and multiplied by the length.",
        ),
        Spelling(
            "Liger Kernel",
            "loss_type='luspo', importance_sampling_level='sequence', beta=0",
            "0.8.0",
            None,
            "With a KL the mean runs over padding too.",
        ),
        Spelling(
            "Unsloth",
            "loss_type='luspo', importance_sampling_level='sequence', beta=0",
            "2026.7.2",
            None,
            "2026.7.1 lacks it.",
        ),
    ),
    "gmpo": (
        Spelling(
            "verl",
            "loss_mode='geo_mean', clip_ratio_low=0.4, clip_ratio_high=0.4",
            "0.6.0",
            None,
            "A mean over the micro-batch whatever loss_agg_mode says. With several micro-batches "
            "right only to 0.7.1 with the default workers: after that, and with "
            "use_legacy_worker_impl='disable', the gradient grows with their number.",
        ),
        Spelling(
            "TRL",
            "trl.experimental.gmpo (epsilon=0.4)",
            "1.7.0",
            None,
            "The weight for vLLM as the sampler is ignored.",
        ),
    ),
}
