"""Which advantages belong to which loss, by the calls of a script."""

import ast

import pytest
from tests.support.checking import check_text

from rlproof.judge.pairs import partners
from rlproof.read.source import Source
from rlproof.read.targets import Script

TWO = """
def step_a():
    loss_a(adv_a(1))


def step_b():
    loss_b({b}(1))


def prepare(x):
    return adv_b(x)


def main(kind):
    step_a() if kind else step_b()
"""


def pairs(text, losses=("loss_a", "loss_b"), advantages=("adv_a", "adv_b")):
    return partners(Script(Source("a.py", text, ast.parse(text)), ()), losses, advantages)


@pytest.mark.parametrize("b", ["adv_b", "prepare"])
def test_the_narrowest_function_that_reaches_both_decides(b):
    """`main` reaches all four; `step_a` and `step_b` one pair each."""
    assert pairs(TWO.replace("{b}", b)) == {"loss_a": "adv_a", "loss_b": "adv_b"}


def test_the_only_advantages_belong_to_every_loss():
    assert pairs("x = 1", advantages=("adv",)) == {"loss_a": "adv", "loss_b": "adv"}


@pytest.mark.parametrize(
    "text",
    [
        "x = 1",
        "def f():\n    loss_a(adv_a(1) + adv_b(1))",
        "def f():\n    loss_a(adv_a(1))\ndef g():\n    loss_a(adv_b(1))",
        "def f():\n    f()\n    loss_a(1)",
    ],
)
def test_what_the_calls_leave_open_stays_open(text):
    assert pairs(text) == {}


def test_statements_of_the_module_and_methods_count():
    assert pairs("loss_a(adv_a(1))") == {"loss_a": "adv_a"}
    method = "class T:\n    def step(self):\n        return self.loss_b(self.adv_b(1))"
    assert pairs(method) == {"loss_b": "adv_b"}


SCRIPT = '''
import numpy as np


def z_scores(rewards, group_size, eps=1e-6):
    """Advantages: z-scores of each group."""
    r = np.asarray(rewards, dtype=float).reshape(-1, group_size)
    return ((r - r.mean(1, keepdims=True)) / (r.std(1, keepdims=True) + eps)).ravel()


def centred_advantages(rewards, group_size):
    """Rewards minus the mean of their group."""
    r = np.asarray(rewards, dtype=float).reshape(-1, group_size)
    return (r - r.mean(1, keepdims=True)).ravel()


def clipped(logp, old_logp, adv, clip_eps):
    ratio, a = np.exp(logp - old_logp), adv[:, None]
    return np.minimum(ratio * a, np.clip(ratio, 1 - clip_eps, 1 + clip_eps) * a)


def grpo_loss(logp, old_logp, adv, mask, clip_eps=0.2):
    s = clipped(logp, old_logp, adv, clip_eps)
    return -((s * mask).sum(1) / np.maximum(mask.sum(1), 1)).mean()


def dr_grpo_loss(logp, old_logp, adv, mask, clip_eps=0.2, max_tokens=8):
    s = clipped(logp, old_logp, adv, clip_eps)
    return -(s * mask).sum() / (len(s) * max_tokens)


def step_grpo(b):
    return grpo_loss(b["lp"], b["old"], z_scores(b["r"], 4), b["m"])


def step_dr_grpo(b):
    return dr_grpo_loss(b["lp"], b["old"], centred_advantages(b["r"], 4), b["m"])
'''


def test_two_objectives_of_one_file_are_named_each(tmp_path):
    recipes = {t.name: t.recipe for t in check_text(tmp_path, SCRIPT).targets if t.role == "loss"}
    assert recipes == {"clipped": "grpo", "grpo_loss": "grpo", "dr_grpo_loss": "dr_grpo"}
