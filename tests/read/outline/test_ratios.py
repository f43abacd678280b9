"""Losses that are given the ratio, or its logarithm: it is computed from log-probs instead."""

import ast

import pytest
from tests.read.outline.test_methods import only, slots
from tests.support.checking import check_text, strong

from rlproof.read.names import Slot, ratio_slot

SURROGATE = """
import torch


def policy_loss({given}, advantages, clip_eps):
    {first}
    kept = ratio.clamp(1 - clip_eps, 1 + clip_eps)
    return -torch.min(ratio * advantages, kept * advantages)
"""


@pytest.mark.parametrize(
    ("name", "slot"),
    [
        ("ratio", Slot.RATIO),
        ("importance_ratio", Slot.RATIO),
        ("log_ratio", Slot.LOG_RATIO),
        ("logratio", Slot.LOG_RATIO),
        ("logprob_diff", Slot.LOG_RATIO),
        ("ppo_kl", Slot.LOG_RATIO),
        ("negative_approx_kl", Slot.LOG_RATIO),
        ("clip_ratio", None),
        ("ratio_max", None),
        ("ref_log_ratio", None),
        ("kl_coef", None),
        ("logps", None),
    ],
)
def test_names_of_ratios(name, slot):
    assert ratio_slot(name) is slot


@pytest.mark.parametrize(
    ("given", "first", "computed"),
    [
        ("ratio", "pass", "ratio = 2.718281828459045 ** (new_logps - old_logps)"),
        ("log_ratio", "ratio = log_ratio.exp()", "log_ratio = new_logps - old_logps"),
        ("approx_kl", "ratio = (-approx_kl).exp()", "approx_kl = old_logps - new_logps"),
        ("approx_kl", "ratio = approx_kl.exp()", "approx_kl = new_logps - old_logps"),
    ],
)
def test_the_ratio_is_written_out(tmp_path, given, first, computed):
    text = SURROGATE.format(given=given, first=first)
    target = only(text)
    assert ast.unparse(target.node.body[0]) == computed
    assert slots(target) == {
        "new_logps": Slot.NEW,
        "old_logps": Slot.OLD,
        "advantages": Slot.ADVANTAGES,
        "clip_eps": Slot.CLIP,
    }
    pytest.importorskip("torch")
    report = check_text(tmp_path, text)
    assert strong(report) == []
    assert report.targets[0].objective["surrogate"] == "min-clip"


def test_a_sign_that_is_wrong_is_still_found(tmp_path):
    pytest.importorskip("torch")
    text = SURROGATE.format(given="ratio", first="pass").replace("-torch.min", "torch.min")
    report = check_text(tmp_path, text)
    assert {f.code for f in report.findings} & {"SUR005"}


def test_beside_old_log_probs_it_is_another_correction():
    target = only("""
    def policy_loss(logps, old_logps, importance_ratio, advantages, clip_eps):
        ratio = (logps - old_logps).exp()
        kept = ratio.clamp(1 - clip_eps, 1 + clip_eps)
        return -(torch.min(ratio * advantages, kept * advantages) * importance_ratio).mean()
    """)
    assert slots(target)["importance_ratio"] is Slot.WEIGHTS
