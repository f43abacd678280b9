"""The published objectives as points of the space, with their sources.

How frameworks spell them is in `rlproof.space.spellings`. What a name means differs between
frameworks: see docs/frameworks.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, inf

from rlproof.space.advantages import Advantage
from rlproof.space.filters import Filter
from rlproof.space.mismatch import Mismatch
from rlproof.space.objective import Divergence, Objective
from rlproof.space.surrogates import Clip


@dataclass(frozen=True, slots=True)
class Published:
    """One published objective."""

    objective: Objective
    source: str
    """The paper; where its equations were not read again, that is said."""


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
        ),
        Published(
            _TOKEN.but(name="dapo", clip=Clip(0.2, 0.28)),
            "Yu et al., DAPO, arXiv:2503.14476, eq. 8",
        ),
        Published(
            _TOKEN,
            "TRL's name for a token mean over the micro-batch; Roux et al. use the term",
        ),
        Published(
            Objective("dr_grpo", advantage=_NO_STD, aggregation="constant-per-sequence"),
            "Liu et al., Understanding R1-Zero-Like Training, arXiv:2503.20783",
        ),
        Published(
            _GRPO.but(
                name="gspo",
                ratio="sequence-mean",
                clip=Clip(3e-4, 4e-4),
                divergence=Divergence(),
            ),
            "Zheng et al., GSPO, arXiv:2507.18071, eq. 5",
        ),
        Published(
            _GRPO.but(
                name="gspo-token",
                ratio="sequence-mean-token",
                clip=Clip(3e-4, 4e-4),
                divergence=Divergence(),
            ),
            "Zheng et al., GSPO, arXiv:2507.18071, eq. 13",
        ),
        Published(
            _GRPO.but(
                name="luspo",
                ratio="sequence-mean",
                aggregation="sequence-sum",
                divergence=Divergence(),
            ),
            "Liu et al., Length-Unbiased Sequence Policy Optimization, arXiv:2602.05261: a row's "
            "ratio with token terms summed",
        ),
        Published(
            _TOKEN.but(name="cispo", surrogate="cispo", clip=Clip(None, 4.0)),
            "MiniMax-M1, arXiv:2506.13585, eq. 4",
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
        ),
        Published(
            _GRPO.but(name="sapo", surrogate="soft-gate", divergence=Divergence()),
            "Gao et al., SAPO, arXiv:2511.20347",
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
            Objective(
                "reinforce++",
                advantage=_WHITE,
                divergence=Divergence("token-reward", estimator="k1", coefficient=0.01),
                aggregation="token-mean",
            ),
            "Hu et al., REINFORCE++, arXiv:2501.03262",
        ),
        Published(
            Objective(
                "reinforce++-baseline",
                advantage=Advantage("group-mean", "none", whiten="token"),
                aggregation="token-mean",
                divergence=Divergence("loss", estimator="k2"),
            ),
            "Hu et al., REINFORCE++, arXiv:2501.03262, the variant with a group baseline",
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
            "Tajwar et al., Maximum Likelihood Reinforcement Learning, arXiv:2602.02710",
        ),
        Published(
            Objective(
                "opo",
                advantage=Advantage("length-weighted-mean", "none"),
                surrogate="log-prob",
                aggregation="token-mean",
            ),
            "Hao et al., OPO, arXiv:2505.23585",
        ),
        Published(
            _TOKEN.but(name="grpo-dual-clip", surrogate="dual-clip", clip=Clip(cap=3.0)),
            "Ye et al., dual-clip PPO, arXiv:1912.09729",
        ),
        Published(
            _TOKEN.but(name="grpo-two-sided", surrogate="two-sided", clip=Clip(cap=4.0)),
            "INTELLECT-2, arXiv:2505.07291",
        ),
        Published(
            _TOKEN.but(name="grpo-tis", mismatch=Mismatch("truncate", high=2.0)),
            "Yao et al., truncated importance sampling of the sampler mismatch, 2025",
        ),
        Published(
            _TOKEN.but(name="icepop", mismatch=Mismatch("mask", low=0.5, high=5.0)),
            "IcePop, of Ring-1T, arXiv:2510.18855: tokens outside the bounds are dropped",
        ),
        Published(
            _TOKEN.but(
                name="seq-mask-tis",
                mismatch=Mismatch("mask", "sequence-mean", 0.5, 2.0, carried="token"),
            ),
            "A row is dropped when the geometric mean of its mismatch leaves the bounds",
        ),
        *(
            Published(
                _TOKEN.but(
                    name=f"dppo-{distance}{form}",
                    advantage=_NO_STD,
                    surrogate=f"{prefix}trust-region-{distance}",
                    clip=Clip(bound, bound, cap=20.0),
                ),
                f"Qi et al., Rethinking the Trust Region, arXiv:2602.04879, eq. {equation}{how}",
            )
            for distance, bound, equation in (("tv", 0.2, 13), ("kl", 0.05, 14))
            for form, prefix, how in (
                ("", "", ""),
                ("-score", "score-", ", with a constant ratio of at most 20 before log π"),
            )
        ),
        Published(
            _TOKEN.but(
                name="opsm",
                rejection=Mismatch(
                    "mask",
                    "sequence-mean",
                    exp(-1e-4),
                    inf,
                    "none",
                    numerator="new",
                    negative_only=True,
                ),
            ),
            "DeepSeek-V3.2, arXiv:2512.02556: rows with A < 0 that drifted are dropped",
        ),
        Published(
            _TOKEN.but(
                name="vespo",
                ratio="sequence-sum",
                ratio_clamp=20.0,
                surrogate="gamma-weight",
            ),
            "Shen et al., VESPO, arXiv:2602.10693",
        ),
        Published(
            Objective(
                "topr",
                advantage=Advantage("none", "none"),
                ratio="sequence-sum",
                surrogate="tapered",
                aggregation="sequence-sum",
            ),
            "Le Roux et al., Tapered Off-Policy REINFORCE, arXiv:2503.14286",
        ),
        Published(
            Objective(
                "dro",
                advantage=_NO_STD,
                surrogate="log-prob",
                divergence=Divergence("loss", "old", "k2", coefficient=0.1),
                aggregation="token-mean",
            ),
            "Richemond et al., DRO, arXiv:2405.19107, and Kimi k1.5, arXiv:2501.12599, by token as "
            "frameworks implement it: A·log π − β/2·(log ρ)²",
        ),
        Published(
            Objective(
                "prime-rl",
                advantage=_NO_STD,
                filter=Filter("zero-advantage"),
                surrogate="trust-region-tv",
                divergence=Divergence("loss", "old", "k2", coefficient=2e-3),
                aggregation="token-mean",
            ),
            "prime-rl's default loss: DPPO by total variation, and 10⁻³·(log ρ)² to the sampler, "
            "whose log-probs are the old ones",
        ),
        Published(
            _TOKEN.but(
                name="gdpo",
                advantage=replace(
                    _SAMPLE,
                    combine="decoupled",
                    whiten="sequence",
                    whiten_eps=1e-4,
                    whiten_eps_place="std + eps",
                ),
            ),
            "Liu et al., GDPO, arXiv:2601.05242: every reward normalised by itself, then the sum",
        ),
        Published(
            _TOKEN.but(
                name="nemo-grpo",
                advantage=Advantage("leave-one-out", "leave-one-out-std", zero_variance="unscaled"),
            ),
            "NeMo-RL's default advantage: mean and std of the other completions",
        ),
        Published(
            _TOKEN.but(name="prompt-mean", aggregation="prompt-mean"),
            "A mean over prompts of the mean over their tokens, as SkyRL names it",
        ),
    )
}
"""Every published objective by name."""
