"""The points that the other tests of objectives go through, and the batches they get.

Every value of every axis appears in a point here; the first test says so.
"""

import random
from math import inf, isnan, nan

import numpy as np
import pytest

from rlproof.space.advantages import Advantage
from rlproof.space.aggregation import PUBLISHED as AGGREGATIONS
from rlproof.space.aggregation import Scope
from rlproof.space.entropy import Entropy
from rlproof.space.filters import Filter
from rlproof.space.masks import Masks
from rlproof.space.mismatch import Mismatch
from rlproof.space.objective import Batch, Divergence, Objective
from rlproof.space.published import OBJECTIVES
from rlproof.space.surrogates import Clip
from rlproof.space.validity import ALLOWED

KL = Divergence("loss", coefficient=0.3)
SAMPLER_KL = Divergence("loss", target="sampler", estimator="k2", coefficient=0.3)
G = Objective()


def kl(**changes):
    return G.but(divergence=Divergence("loss", coefficient=0.3, **changes))


def mis(*coordinates, **changes):
    return G.but(mismatch=Mismatch(*coordinates, **changes), divergence=SAMPLER_KL)


POINTS = {
    "min-clip": G,
    "min-clip open below": G.but(clip=Clip(None, 0.28)),
    "min-clip open above": G.but(clip=Clip(0.2, None), aggregation="token-mean"),
    "min-clip absolute": G.but(clip=Clip(0.7, 1.4, convention="absolute"), aggregation="sum"),
    "min-clip log": G.but(clip=Clip(0.3, 0.4, convention="log"), aggregation="constant"),
    "min-clip clamped": G.but(ratio_clamp=0.5, clip=Clip(None, None)),
    "dual-clip": G.but(surrogate="dual-clip", clip=Clip(cap=1.5), aggregation="per-token"),
    "two-sided": G.but(surrogate="two-sided", clip=Clip(cap=1.5), aggregation="sequence-sum"),
    "unclipped": G.but(surrogate="unclipped", aggregation="constant-per-sequence"),
    "unclipped clamped": G.but(surrogate="unclipped", ratio_clamp=0.4),
    "log-prob": G.but(surrogate="log-prob", aggregation="token-mean"),
    "cispo": G.but(surrogate="cispo", aggregation="token-mean"),
    "cispo absolute": G.but(surrogate="cispo", clip=Clip(None, 1.3, convention="absolute")),
    "cispo of rows": G.but(surrogate="cispo", ratio="sequence-mean", clip=Clip(0.05, 0.05)),
    "soft-gate": G.but(surrogate="soft-gate"),
    "soft-gate clamped rows": G.but(surrogate="soft-gate", ratio="sequence-sum", ratio_clamp=0.5),
    "masked-ratio": G.but(surrogate="masked-ratio", aggregation="token-mean"),
    "masked-probability": G.but(surrogate="masked-probability", clip=Clip(0.05, 0.05)),
    "masked-probability open": G.but(surrogate="masked-probability", clip=Clip(None, None)),
    "gspo": G.but(ratio="sequence-mean", clip=Clip(0.03, 0.04)),
    "gspo clamped": G.but(ratio="sequence-mean", ratio_clamp=0.1, surrogate="unclipped"),
    "gspo-token": G.but(ratio="sequence-mean-token", clip=Clip(0.03, 0.04)),
    "gspo-token clamped": G.but(
        ratio="sequence-mean-token", ratio_clamp=0.1, surrogate="unclipped"
    ),
    "product": G.but(ratio="sequence-sum", aggregation="sequence-sum"),
    "gmpo": G.but(
        ratio="geometric-of-clipped", surrogate="unclipped", clip=Clip(0.2, 0.3, convention="log")
    ),
    "gmpo open": G.but(
        ratio="geometric-of-clipped", surrogate="unclipped", clip=Clip(None, None), divergence=KL
    ),
    "gmpo clamped": G.but(ratio="geometric-of-clipped", surrogate="unclipped", ratio_clamp=0.1),
    "k1": kl(estimator="k1"),
    "k2": kl(estimator="k2"),
    "k3": kl(),
    "absolute": kl(estimator="absolute", aggregation="token-mean"),
    "k3 straight-through": kl(gradient="straight-through-k2", aggregation="sequence-sum"),
    "k3 ratio-weighted": kl(gradient="ratio-weighted", aggregation="sequence-mean"),
    "k1 score-weighted": kl(estimator="k1", gradient="score-weighted", aggregation="sum"),
    "k3 clamped in": kl(clamp_in=0.4, aggregation="per-token"),
    "k3 clamped out": kl(clamp_out=0.1, aggregation="constant"),
    "k1 clamped, weighted": kl(
        estimator="k1", gradient="ratio-weighted", clamp_in=0.6, clamp_out=0.4
    ),
    "k2 to the sampler": G.but(divergence=SAMPLER_KL),
    "k3 to the sampler": kl(target="sampler", aggregation="constant-per-sequence"),
    "divergence in the reward": G.but(divergence=Divergence("reward", estimator="k1")),
    "truncated tokens": mis("truncate", "token", 0.0, 1.2),
    "truncated products": mis("truncate", "sequence-sum", 0.5, 1.5, on_divergence=True),
    "truncated means": mis("truncate", "sequence-mean", 0.9, 1.1),
    "masked tokens": mis("mask", "token", 0.7, 1.3),
    "masked rows, tokens carried": mis("mask", "sequence-mean", 0.9, 1.1, "token"),
    "masked rows, none carried": mis("mask", "sequence-sum", 0.5, 2.0, "none", True),
    "entropy": G.but(entropy=Entropy(0.01), aggregation="token-mean"),
    "trust region tv": G.but(surrogate="trust-region-tv", clip=Clip(0.05, 0.04)),
    "trust region kl": G.but(surrogate="trust-region-kl", clip=Clip(0.01, 0.02)),
    "score trust region tv": G.but(
        surrogate="score-trust-region-tv", clip=Clip(0.05, 0.04, cap=1.1), aggregation="token-mean"
    ),
    "score trust region kl": G.but(
        surrogate="score-trust-region-kl", clip=Clip(0.01, None, cap=1.2)
    ),
    "tapered": G.but(surrogate="tapered", ratio="sequence-sum"),
    "gamma-weight": G.but(surrogate="gamma-weight", ratio="sequence-sum", ratio_clamp=20.0),
    "prompt-mean": G.but(aggregation="prompt-mean", divergence=KL),
    "divergence by prompt": kl(aggregation="prompt-mean"),
    "masks": G.but(masks=Masks("dropped", "dropped")),  # they are applied before a loss
    "quadratic": G.but(
        surrogate="log-prob", divergence=Divergence("loss", "old", "k2", coefficient=0.5)
    ),
    "k3 level-weighted": kl(gradient="level-weighted", aggregation="token-mean"),
    "k3 level-weighted rows": G.but(
        ratio="sequence-mean", divergence=Divergence("loss", gradient="level-weighted")
    ),
    "k2 level-weighted clipped rows": G.but(
        ratio="geometric-of-clipped", surrogate="unclipped", ratio_clamp=0.1,
        divergence=Divergence("loss", "sampler", "k2", "level-weighted", 0.3),
    ),
    "divergence in the reward of tokens": G.but(divergence=Divergence("token-reward")),
    "divergence in the advantage": G.but(divergence=Divergence("advantage", estimator="k1")),
    "masked by k2": mis("mask", "token", 0.0, 0.05, "token", statistic="k2", counted=False),
    "masked by summed k3": mis("mask", "sequence-sum", 0.0, 0.25, statistic="k3"),
    "masked by the largest": mis("mask", "sequence-max", 0.0, 0.3, "none", statistic="absolute"),
    "masked by mean k3": mis(
        "mask", "sequence-mean", 0.0, 0.06, "none", statistic="k3", counted=False
    ),
    "masked by total variation": mis("mask", high=0.06, low=-1.0, statistic="total-variation"),
    "masked by binary kl": mis("mask", high=0.02, low=-1.0, statistic="binary-kl", counted=False),
    "largest ratio": mis("truncate", "sequence-max", 0.0, 1.3),
    "weights of mean 1": mis("truncate", "token", 0.0, 1.2, normalised=True),
    "row weights of mean 1": mis("mask", "sequence-sum", 0.0, 1.8, normalised=True),
    "off-policy rows": mis(
        "mask", "sequence-mean", 0.9, inf, "none", numerator="new", negative_only=True
    ),
    "two corrections": G.but(
        mismatch=Mismatch("truncate", "token", 0.0, 1.5),
        rejection=Mismatch("mask", "sequence-mean", 0.9, 1.2, "none", True, counted=False),
        divergence=KL,
    ),
    "zero advantages out": G.but(filter=Filter("zero-advantage"), divergence=KL),
    "zero advantages counted": G.but(filter=Filter("zero-advantage", counted=True), divergence=KL),
    "filtered rows": G.but(filter=Filter("mean-range"), divergence=KL, aggregation="token-mean"),
    "filtered rows counted": G.but(filter=Filter("zero-variance", counted=True), divergence=KL),
    "rejected products": G.but(
        rejection=Mismatch("truncate", "sequence-sum", 0.0, 1.5), divergence=SAMPLER_KL
    ),
    "rejected by the largest k2": G.but(
        rejection=Mismatch("mask", "sequence-max", 0.0, 0.1, "token", statistic="k2")
    ),
    "rejected by k3": G.but(rejection=Mismatch("mask", "token", 0.0, 0.1, statistic="k3")),
    "rejected by distance": G.but(
        rejection=Mismatch("mask", high=0.3, low=-1.0, statistic="absolute", numerator="new")
    ),
    "rejected by total variation": G.but(
        rejection=Mismatch("mask", high=0.1, low=-1.0, statistic="total-variation")
    ),
    "rejected by binary kl": G.but(
        rejection=Mismatch("mask", high=0.05, low=-1.0, statistic="binary-kl")
    ),
    "undecided tokens": G.but(
        entropy=Entropy(0.1, "token-mean", 0.4), divergence=KL, aggregation="sequence-sum"
    ),
    "everything": Objective(
        ratio="sequence-mean-token", surrogate="dual-clip", clip=Clip(0.1, 0.2, 1.1),
        mismatch=Mismatch("mask", "token", 0.7, 1.5, on_divergence=True),
        entropy=Entropy(0.1),
        divergence=Divergence("loss", gradient="ratio-weighted", aggregation="token-mean"),
        aggregation="sequence-sum", ratio_clamp=0.5,
    ),
}  # fmt: skip
POINTS |= {
    f"entropy by {name}": G.but(entropy=Entropy(0.1, name), divergence=KL) for name in AGGREGATIONS
}
POINTS |= {f"published {name}": one.objective for name, one in OBJECTIVES.items()}

A = Advantage()
ADVANTAGES = {
    "grpo": A,
    "grpo sample": Advantage(scale="sample-std", eps=1e-4),
    "dr-grpo": Advantage(scale="none"),
    "rloo": Advantage("leave-one-out", "none"),
    "rloo raw": Advantage("leave-one-out", "none", singleton="raw"),
    "nemo": Advantage("leave-one-out", "leave-one-out-std", zero_variance="unscaled"),
    "others divided": Advantage("group-mean", "leave-one-out-std", eps=0.1),
    "reinforce++": Advantage("batch-mean", "batch-population-std"),
    "reinforce++ sample": Advantage("batch-mean", "batch-sample-std", eps=0.0),
    "reinforce++ tokens": Advantage("none", "none", whiten="token"),
    "reinforce++ baseline": Advantage(scale="none", whiten="token", whiten_sample=False),
    "gdpo": Advantage(whiten="sequence", whiten_eps=1e-4),
    "opo": Advantage("length-weighted-mean", "none"),
    "opo scaled": Advantage("length-weighted-mean", "sample-std", eps_place="sqrt(var + eps)"),
    "gpg": Advantage(scale="nonzero-share"),
    "maxrl": Advantage(scale="group-mean", eps=0.5),
    "plain": Advantage("none", "none"),
    "plain over std": Advantage("none", "population-std", eps=0.1, singleton="raw"),
    "batch over group": Advantage("batch-mean", "sample-std", eps=0.5, clip=1.0),
    "rooted whitening": Advantage(whiten="token", whiten_eps=0.1, whiten_eps_place="std + eps"),
    "root": Advantage(eps=1e-2, eps_place="sqrt(var + eps)"),
    "floor": Advantage(eps=1e-2, eps_place="sqrt(max(var, eps))"),
    "unscaled": Advantage(eps=0.0, zero_variance="unscaled", singleton="raw"),
    "no eps": Advantage(eps=0.0),
    "strict": Advantage(singleton="error"),
    "clipped": Advantage(clip=0.7, whiten="sequence", whiten_sample=False),
    "clipped first": Advantage(clip=0.7, clip_place="before whitening", whiten="token"),
    "floored whitening": Advantage(
        scale="none", whiten="token", whiten_eps=0.1, whiten_eps_place="sqrt(max(var, eps))"
    ),
    "clipped rewards": Advantage(scale="none", reward_clip=(0.0, 0.5)),
    "one of several": Advantage(combine="decoupled", reward_weights=(0.5,), whiten="sequence"),
}

WIDTH = 6
MASK = [  # holes, a full row, a row of one token, a row without any
    [1, 1, 1, 1, 1, 1],
    [1, 1, 0, 1, 0, 0],
    [0, 0, 0, 0, 0, 0],
    [0, 1, 0, 0, 0, 0],
    [0, 1, 1, 1, 1, 0],
]


def data(kind="sampled", mask=MASK, scope=None, seed=88):
    """Nested lists, NaN on padding. Gaps of about 0.4 nats put tokens on both sides of a clip."""
    rng = random.Random(seed)

    def slots(make):
        return [[make() if m else nan for m in row] for row in mask]

    def near(values, spread):
        """Log-probs, so below 0; NaN stays."""
        return [
            [v if isnan(v) else min(v + rng.gauss(0, spread), -1e-3) for v in row] for row in values
        ]

    new = slots(lambda: -abs(rng.gauss(1.2, 0.8)))
    old = near(new, 0.4)
    adv = slots(lambda: rng.gauss(0, 1)) if kind == "tokens" else [rng.gauss(0, 1) for _ in mask]
    at_zero = adv[0] if kind == "tokens" else adv
    at_zero[2 if kind == "tokens" else -1] = 0.0
    return {
        "groups": [0, 0, 0, 1, 1][: len(mask)],
        "kept": [1, 0, 1, 1, 1][: len(mask)],
        "new": new,
        "old": None if kind == "on-policy" else old,
        "ref": near(new, 0.5),
        "sampler": near(old, 0.3),
        "entropy": slots(lambda: rng.uniform(0, 2)),
        "advantages": adv,
        "mask": mask,
        "scope": scope or Scope(length=8.0),
    }


KINDS = ("sampled", "on-policy", "tokens")


def batch(lists, make):
    """A batch of arrays, made by `make`."""
    plain = ("scope", "groups")
    return Batch(**{k: v if k in plain or v is None else make(v) for k, v in lists.items()})


def floats(values):
    return np.array(values, dtype=np.float64)


@pytest.mark.parametrize("axis", list(ALLOWED))
def test_every_value_has_a_point(axis):
    part, _, field = axis.rpartition(".")
    if part == "advantage":
        seen = {getattr(how, field) for how in ADVANTAGES.values()}
    else:
        seen = {point.coordinates()[axis] for point in POINTS.values()}
    assert seen >= set(ALLOWED[axis])


def test_batches_are_on_both_sides_of_the_clips():
    """Ratios below 0.8, inside and above 1.2 for both signs; else agreement would say little."""
    lists = data()
    seen = set()
    for row, old, adv, mask in zip(
        lists["new"], lists["old"], lists["advantages"], MASK, strict=True
    ):
        for x, o, m in zip(row, old, mask, strict=True):
            if m:
                ratio = np.exp(x - o)
                seen.add((adv > 0, "low" if ratio < 0.8 else "high" if ratio > 1.2 else "in"))
    assert len(seen) == 6
