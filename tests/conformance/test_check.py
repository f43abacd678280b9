"""`check` on the frameworks' own functions: silent, and named as their options say.

A script is written for each case into a temporary folder: the functions as the wheel has them,
and a few lines that give them the signature of a loss. It is thrown away with the folder.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.conformance import wheels
from tests.support.checking import check_text, strong

pytestmark = pytest.mark.conformance

LIGER = (
    "liger-kernel",
    "0.8.5",
    "liger_kernel/chunked_loss/grpo_loss.py",
    ["k3_loss_fn", "get_gamma_weights", "sapo_loss_fn", "clip_coef_fn",
     "LigerFusedLinearGRPOFunction.ppo_loss_fn"],
    """
import math
import torch
from typing import Optional
from types import SimpleNamespace


class LigerFusedLinearPPOBase:
    @staticmethod
    def _compute_dapo_normalizer(attention_mask, **_):
        return attention_mask.sum().clamp(min=1)
""",
    """
def policy_loss(logps, old_logps, ref_logps, advantages, mask, clip_eps=0.2, beta=0.04):
    \"\"\"The framework's loss, to be minimised.\"\"\"
    return ppo_loss_fn(logps, mask, advantages, mask, ref_logps, old_logps,
                       epsilon_low=clip_eps, epsilon_high=clip_eps, beta=beta, OPTIONS)[0]
""",
)  # fmt: skip
VERL = (
    "verl",
    "0.9.1",
    "verl/trainer/ppo/core_algos.py",
    ["agg_loss", "compute_policy_loss_vanilla", "compute_policy_loss_gspo",
     "compute_policy_loss_sapo", "compute_policy_loss_geo_mean"],
    """
import torch
from types import SimpleNamespace
from typing import Any, Optional


class verl_F:
    @staticmethod
    def masked_sum(values, mask, axis=None):
        return torch.where(mask.bool(), values, 0.0).sum(axis)

    @staticmethod
    def masked_mean(values, mask, axis=None):
        return verl_F.masked_sum(values, mask, axis) / mask.sum(axis)


ActorConfig = SimpleNamespace


class AlgoConfig:
    pass



def config(eps):
    policy = {"tau_pos": 1.0, "tau_neg": 1.05}
    return ActorConfig(clip_ratio=eps, clip_ratio_low=eps, clip_ratio_high=eps,
                       clip_ratio_c=3.0, policy_loss=SimpleNamespace(**policy, get=policy.get),
                       tau_pos=1.0, tau_neg=1.05, global_batch_info={}, get=policy.get)
""",
    """
def policy_loss(log_prob, old_log_prob, advantages, response_mask, cliprange=0.2):
    \"\"\"The framework's loss, to be minimised.\"\"\"
    rows = advantages[:, None].expand_as(log_prob)
    return compute_policy_loss_MODE(old_log_prob, log_prob, rows, response_mask,
                                    loss_agg_mode="AGG", config=config(cliprange))[0]
""",
)  # fmt: skip


def source(name: str, version: str, module: str, names: list[str]) -> str:
    """Definitions of a module as text, without decorators and annotations' imports."""
    archive = wheels.wheel(name, version)
    tree = wheels._tree(archive, module)
    found = [wheels._bare(wheels._find(tree, one, module)) for one in names]
    return "\n\n\n".join(ast.unparse(node) for node in found)


def verdict(tmp_path: Path, framework: tuple, **replacements: str):
    name, version, module, names, head, tail = framework
    if "sapo" in "".join(replacements.values()):  # it takes no clip range
        for clip in ("clip_eps", "cliprange"):
            tail = tail.replace(f", {clip}=0.2", "").replace(clip, "0.2")
    for old, new in replacements.items():
        tail = tail.replace(old, new)
    return check_text(tmp_path, f"{head}\n\n{source(name, version, module, names)}\n\n{tail}")


def loss_of(report) -> dict:
    [target] = [t for t in report.targets if t.name == "policy_loss"]
    return {**target.objective, "recipe": target.recipe}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ('loss_type="grpo"', {"aggregation": "sequence-mean", "surrogate": "min-clip",
                              "divergence": "k3", "recipe": "grpo"}),
        ('loss_type="bnpo"', {"aggregation": "token-mean", "surrogate": "min-clip"}),
        ('loss_type="dapo"', {"aggregation": "token-mean", "surrogate": "min-clip"}),
        ('loss_type="dr_grpo", max_completion_length=16',
         {"aggregation": "constant-per-sequence", "factor": 1 / 16}),
        ('loss_type="sapo"', {"surrogate": "soft-gate", "aggregation": "sequence-mean"}),
        ('loss_type="grpo", importance_sampling_level="sequence"',
         {"level": "sequence-mean", "aggregation": "sequence-mean"}),
        ('loss_type="grpo", delta=4.0', {"surrogate": "dual-clip", "cap": 4.0}),
        ('loss_type="grpo", use_bias_correction_kl=True', {"divergence": "k3-ratio-weighted"}),
    ],
)  # fmt: skip
def test_liger(tmp_path, options, expected):
    report = verdict(tmp_path, LIGER, OPTIONS=options)
    assert strong(report) == []
    got = loss_of(report)
    assert {axis: got.get(axis) for axis in expected} == expected


@pytest.mark.parametrize(
    ("mode", "aggregation", "expected"),
    [
        ("vanilla", "token-mean", {"surrogate": "dual-clip", "aggregation": "token-mean"}),
        ("vanilla", "seq-mean-token-mean", {"aggregation": "sequence-mean"}),
        ("vanilla", "seq-mean-token-sum", {"aggregation": "sequence-sum"}),
        ("gspo", "seq-mean-token-mean", {"level": "sequence-mean", "surrogate": "min-clip"}),
        ("sapo", "seq-mean-token-mean", {"surrogate": "soft-gate"}),
    ],
)
def test_verl(tmp_path, mode, aggregation, expected):
    report = verdict(tmp_path, VERL, MODE=mode, AGG=aggregation)
    assert strong(report) == []
    got = loss_of(report)
    assert {axis: got.get(axis) for axis in expected} == expected
