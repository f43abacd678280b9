"""Spellings of points that are about the surrogate of a token."""

from __future__ import annotations

from collections.abc import Mapping

from rlproof.space.spellings.notes import (
    LIGER_TOKENS,
    NEMO,
    TRL_TOKENS,
    skyrl_tokens,
    swift_tokens,
    verl_tokens,
)
from rlproof.space.spellings.record import Spelling

SPELLINGS: Mapping[str, tuple[Spelling, ...]] = {
    "grpo-dual-clip": (
        Spelling(
            "verl",
            "loss_agg_mode='token-mean'",
            "0.8.0",
            None,
            f"clip_ratio_c=3.0 is the default. {verl_tokens('0.4.0')}",
        ),
        Spelling(
            "OpenRLHF",
            "--algo.advantage.estimator group_norm --actor.dual_clip 3 --algo.kl.init_coef 0",
            "0.10.4",
            None,
            "From 0.8.6 (--dual_clip before 0.10.2) with the count of the micro-batch, and in "
            "0.10.3 of all ranks.",
        ),
        Spelling(
            "SkyRL",
            "policy_loss_type='dual_clip', clip_ratio_c=3.0, use_kl_loss=False",
            "skyrl 0.2.0",
            None,
            skyrl_tokens("skyrl-train 0.1.0"),
        ),
        Spelling(
            "AReaL",
            "c_clip=3.0, kl_ctl=0, reward_norm of group mean and group std",
            "≤ 1.0.4",
            None,
            "kl_ctl=0.1 by default. The scope of the token count was not found.",
        ),
        Spelling(
            "NeMo-RL",
            f"ratio_clip_c=3, token_level_loss=True, {NEMO}",
            "v0.4.0",
            None,
            "v0.2.1 and v0.3.0: the same clip, a population std.",
            "git tag",
        ),
        Spelling(
            "slime",
            "--eps-clip-c 3.0 --calculate-per-token-loss",
            "≤ v0.1.0",
            None,
            "ROLL's dual_clip_loss=True caps at 1 + 2·pg_clip, 1.4 for a clip of 0.2: another "
            "point.",
            "git tag",
        ),
    ),
    "grpo-two-sided": (
        Spelling(
            "TRL",
            "delta=4.0, loss_type='dapo', beta=0",
            "0.22.2",
            None,
            f"From 0.18.0 with loss_type='bnpo'. {TRL_TOKENS}",
            "executed",
        ),
        Spelling(
            "Liger Kernel",
            "delta=4.0, loss_type='dapo', beta=0",
            "0.8.1",
            None,
            f"{LIGER_TOKENS} 0.8.0: always so.",
        ),
        Spelling(
            "ms-swift",
            "delta=4.0, loss_type='dapo', beta=0",
            "4.6.0",
            None,
            f"From 3.5.0 with loss_type='bnpo'. {swift_tokens('3.11.0')}",
        ),
        Spelling(
            "Unsloth",
            "delta=4.0, loss_type='dapo', beta=0",
            "2025.10.13",
            None,
            "From 2025.5.11 with loss_type='bnpo'.",
        ),
    ),
    "cispo": (
        Spelling(
            "TRL",
            "loss_type='cispo', epsilon_high=5.0, beta=0",
            "0.26.0",
            None,
            f"epsilon_high bounds the ratio itself: 5 for 1 + 4. {TRL_TOKENS}",
        ),
        Spelling(
            "Liger Kernel",
            "loss_type='cispo', epsilon_high=5.0, beta=0",
            "0.8.1",
            None,
            f"{LIGER_TOKENS} 0.7.0-0.8.0: always so.",
        ),
        Spelling(
            "verl",
            "loss_mode='cispo', clip_ratio_low=1.0, clip_ratio_high=4.0",
            "0.8.0",
            None,
            "The defaults bound the ratio to [0.8, 1.2]; with 1.0 the lower bound is 0. "
            f"{verl_tokens('0.7.0')}",
        ),
        Spelling(
            "SkyRL",
            "policy_loss_type='cispo', cispo.cispo_eps_clip_low=1.0, "
            "cispo.cispo_eps_clip_high=4.0, use_kl_loss=False",
            "skyrl 0.2.0",
            None,
            "The default bounds are [1, 6] to skyrl 0.3.0 and [0, 5] from 0.4.0. "
            f"{skyrl_tokens('skyrl-train 0.3.0')}",
        ),
        Spelling(
            "ms-swift",
            "loss_type='cispo', epsilon_high=5.0, beta=0",
            "4.6.0",
            None,
            swift_tokens("3.11.0"),
        ),
        Spelling(
            "Unsloth",
            "loss_type='cispo', epsilon_high=5.0, beta=0",
            "2026.2.1",
            None,
            "2026.1.4 lacks it.",
        ),
        Spelling(
            "NeMo-RL",
            f"use_cispo=True, ratio_clip_min=1.0, ratio_clip_max=4.0, {NEMO}",
            "v0.7.0",
            None,
            "",
            "git tag",
        ),
        Spelling(
            "slime",
            "--advantage-estimator cispo --eps-clip 1.0 --eps-clip-high 4.0 "
            "--calculate-per-token-loss",
            "v0.3.1",
            None,
            "",
            "git tag",
        ),
    ),
    "sapo": (
        Spelling(
            "TRL",
            "loss_type='sapo', beta=0",
            "0.26.0",
        ),
        Spelling("Liger Kernel", "loss_type='sapo', beta=0", "0.7.0"),
        Spelling(
            "verl",
            "loss_mode='sapo'",
            "0.7.0",
            None,
            "A mean over rows whatever loss_agg_mode says.",
        ),
        Spelling(
            "SkyRL",
            "policy_loss_type='sapo', loss_reduction='sequence_mean', use_kl_loss=False",
            "skyrl-train 0.3.1",
            None,
            "The default loss_reduction is a token mean.",
        ),
        Spelling(
            "ms-swift",
            "loss_type='sapo', beta=0",
            "3.11.0",
            None,
            "AReaL's use_sapo_loss=True (1.0.4) is a token mean: another point.",
        ),
        Spelling("Unsloth", "loss_type='sapo', beta=0", "2026.2.1"),
    ),
    "vespo": (
        Spelling(
            "TRL",
            "loss_type='vespo', beta=0",
            "1.0.0",
            None,
            f"In 1.0.0rc1 too. The correction for vLLM enters the weight itself. {TRL_TOKENS}",
        ),
        Spelling(
            "Liger Kernel",
            "loss_type='vespo', beta=0",
            "0.8.1",
            None,
            f"{LIGER_TOKENS} 0.8.0: always so.",
        ),
        Spelling(
            "Unsloth",
            "loss_type='vespo', beta=0",
            "2026.5.2",
            None,
            "2026.5.1 lacks it. Needs TRL 1.0.0, although its message says 0.26.0.",
        ),
    ),
}
