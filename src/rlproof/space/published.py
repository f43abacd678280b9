"""The published objectives as points of the space, with their sources and their spellings.

Spellings name the options of a framework that compute the point, with the version that was
compared; `tests/conformance` runs them. What a name means differs between frameworks: see
docs/frameworks.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rlproof.space.advantages import Advantage
from rlproof.space.mismatch import Mismatch
from rlproof.space.objective import Divergence, Objective
from rlproof.space.surrogates import Clip


@dataclass(frozen=True, slots=True)
class Published:
    """One published objective."""

    objective: Objective
    source: str
    spellings: Mapping[str, str] = field(default_factory=dict)
    """Framework and version to the options that compute this point."""


_NO_STD = Advantage(scale="none")
_SAMPLE = Advantage(scale="sample-std", eps=1e-4)
_KL = Divergence("loss")
_GRPO = Objective("grpo", advantage=_SAMPLE, divergence=_KL)
_TOKEN = _GRPO.but(name="bnpo", aggregation="token-mean", divergence=Divergence())
_WHITE = Advantage(baseline="none", scale="none", whiten="token")


OBJECTIVES: dict[str, Published] = {
    p.objective.name: p
    for p in (
        Published(
            _GRPO,
            "Shao et al., DeepSeekMath, arXiv:2402.03300, eq. 3",
            {
                "TRL 1.16.0": "loss_type='grpo', beta=0.04, use_bias_correction_kl=False",
                "Liger-Kernel 0.8.5": "loss_type='grpo', beta=0.04",
                "verl 0.9.1": "loss_agg_mode='seq-mean-token-mean', use_kl_loss, "
                "kl_loss_type='low_var_kl', clip_ratio_c large",
                "OpenRLHF 0.11.2": "loss_agg_mode='seq-mean-token-mean', --algo.kl.use_loss, k3",
            },
        ),
        Published(
            _TOKEN.but(name="dapo", clip=Clip(0.2, 0.28)),
            "Yu et al., DAPO, arXiv:2503.14476, eq. 8",
            {
                "TRL 1.16.0": "loss_type='dapo', epsilon=0.2, epsilon_high=0.28, beta=0",
                "Liger-Kernel 0.8.5": "loss_type='dapo', epsilon_high=0.28, beta=0",
                "verl 0.9.1": "loss_agg_mode='token-mean', clip_ratio_high=0.28",
                "OpenRLHF 0.11.2": "eps_clip_low_high 0.2 0.28, token-level loss",
            },
        ),
        Published(
            _TOKEN,
            "TRL's name for a token mean over the micro-batch; Roux et al. use the term",
            {"TRL 1.16.0": "loss_type='bnpo'", "Liger-Kernel 0.8.5": "loss_type='bnpo'"},
        ),
        Published(
            Objective("dr_grpo", advantage=_NO_STD, aggregation="constant-per-sequence"),
            "Liu et al., Understanding R1-Zero-Like Training, arXiv:2503.20783",
            {
                "TRL 1.16.0": "loss_type='dr_grpo', scale_rewards='none'",
                "Liger-Kernel 0.8.5": "loss_type='dr_grpo', max_completion_length=L",
                "verl 0.9.1": "loss_agg_mode='seq-mean-token-sum-norm', loss_scale_factor=L, "
                "norm_adv_by_std_in_grpo=False",
            },
        ),
        Published(
            _GRPO.but(
                name="gspo",
                ratio="sequence-mean",
                clip=Clip(3e-4, 4e-4),
                divergence=Divergence(),
            ),
            "Zheng et al., GSPO, arXiv:2507.18071, eq. 5",
            {
                "TRL 1.16.0": "importance_sampling_level='sequence', loss_type='grpo'",
                "OpenRLHF 0.11.2": "policy_loss_type='gspo'",
            },
        ),
        Published(
            _GRPO.but(
                name="gspo-token",
                ratio="sequence-mean-token",
                clip=Clip(3e-4, 4e-4),
                divergence=Divergence(),
            ),
            "Zheng et al., GSPO, arXiv:2507.18071, eq. 13",
            {"verl 0.9.1": "loss_mode='gspo'", "SkyRL 0.3.0": "policy_loss_type='gspo'"},
        ),
        Published(
            _GRPO.but(
                name="luspo",
                ratio="sequence-mean",
                aggregation="sequence-sum",
                divergence=Divergence(),
            ),
            "LUSPO as TRL implements it: a sequence ratio with token terms summed",
            {"TRL 1.16.0": "loss_type='luspo', importance_sampling_level='sequence'"},
        ),
        Published(
            _TOKEN.but(name="cispo", surrogate="cispo", clip=Clip(None, 4.0)),
            "MiniMax-M1, arXiv:2506.13585, eq. 4",
            {
                "TRL 1.16.0": "loss_type='cispo', epsilon_high=5.0 (an absolute bound)",
                "verl 0.9.1": "loss_mode='cispo' (with a lower bound as well)",
            },
        ),
        Published(
            _GRPO.but(
                name="gmpo",
                ratio="geometric-of-clipped",
                surrogate="unclipped",
                clip=Clip(0.4, 0.4, convention="log"),
                divergence=Divergence(),
            ),
            "Zhao et al., GMPO, arXiv:2507.20673",
            {"verl 0.9.1": "loss_mode='geo_mean'"},
        ),
        Published(
            _GRPO.but(name="sapo", surrogate="soft-gate", divergence=Divergence()),
            "Gao et al., SAPO, arXiv:2511.20347",
            {"TRL 1.16.0": "loss_type='sapo'", "verl 0.9.1": "loss_mode='sapo'"},
        ),
        Published(
            Objective(
                "rloo",
                advantage=Advantage("leave-one-out", "none"),
                surrogate="log-prob",
                aggregation="sequence-sum",
                divergence=Divergence("reward", estimator="k1", coefficient=0.05),
            ),
            "Ahmadian et al., Back to Basics, arXiv:2402.14740, eq. 8",
        ),
        Published(
            Objective("reinforce++", advantage=_WHITE, aggregation="token-mean"),
            "Hu et al., REINFORCE++, arXiv:2501.03262",
            {"verl 0.9.1": "adv_estimator='reinforce_plus_plus'"},
        ),
        Published(
            Objective(
                "reinforce++-baseline",
                advantage=Advantage("group-mean", "none", whiten="token"),
                aggregation="token-mean",
                divergence=Divergence("loss", estimator="k2"),
            ),
            "Hu et al., REINFORCE++, arXiv:2501.03262, the variant with a group baseline",
            {"verl 0.9.1": "adv_estimator='reinforce_plus_plus_baseline'"},
        ),
        Published(
            Objective(
                "gpg",
                advantage=Advantage("group-mean", "nonzero-share"),
                surrogate="log-prob",
                aggregation="token-mean",
            ),
            "Chu et al., GPG, arXiv:2504.02546",
        ),
        Published(
            Objective("maxrl", advantage=Advantage("group-mean", "group-mean")),
            "MaxRL: rewards divided by the group's mean success",
        ),
        Published(
            Objective(
                "opo",
                advantage=Advantage("length-weighted-mean", "none"),
                surrogate="log-prob",
                aggregation="token-mean",
            ),
            "Hao et al., OPO, arXiv:2505.23585",
            {"verl 0.9.1": "adv_estimator='opo'"},
        ),
        Published(
            _TOKEN.but(name="grpo-dual-clip", surrogate="dual-clip", clip=Clip(cap=3.0)),
            "Ye et al., dual-clip PPO, arXiv:1912.09729",
            {"verl 0.9.1": "clip_ratio_c=3.0, the default"},
        ),
        Published(
            _TOKEN.but(name="grpo-two-sided", surrogate="two-sided", clip=Clip(cap=4.0)),
            "INTELLECT-2, arXiv:2505.07291",
            {"TRL 1.16.0": "delta=4.0", "Liger-Kernel 0.8.5": "delta=4.0"},
        ),
        Published(
            _TOKEN.but(name="grpo-tis", mismatch=Mismatch("truncate", high=2.0)),
            "Yao et al., truncated importance sampling of the sampler mismatch, 2025",
            {
                "TRL 1.16.0": "vllm_importance_sampling_mode='token_truncate', cap 2",
                "verl 0.9.1": "rollout_is='token', threshold 2",
            },
        ),
        Published(
            _TOKEN.but(name="icepop", mismatch=Mismatch("mask", low=0.5, high=5.0)),
            "IcePop: tokens outside the bounds are dropped",
        ),
        Published(
            _TOKEN.but(
                name="seq-mask-tis",
                mismatch=Mismatch("mask", "sequence-mean", 0.5, 2.0, carried="token"),
            ),
            "A row is dropped when the geometric mean of its mismatch leaves the bounds",
        ),
        Published(
            _TOKEN.but(
                name="dppo-tv",
                advantage=_NO_STD,
                surrogate="masked-probability",
            ),
            "Importance sampling where the probability moved by at most 0.2",
        ),
    )
}
"""Every published objective by name."""
