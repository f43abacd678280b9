"""Losses over MLX arrays, whose gradient MLX itself gives. Skipped where MLX is not installed."""

import pytest
from tests.support.checking import check_text, strong

pytest.importorskip("mlx.core")

LOSS = '''
import mlx.core as mx


def grpo_loss(logps, old_logps, ref_logps, advantages, mask, clip_eps=0.2, beta=0.1):
    """A loss to minimise."""
    ratio = mx.exp(logps - old_logps)
    a = advantages[:, None]
    terms = mx.{picker}(ratio * a, mx.clip(ratio, 1.0 - clip_eps, 1.0 + clip_eps) * a)
    d = ref_logps - logps
    kl = mx.exp(d) - d - 1
    return -((terms - beta * kl) * mask).sum() / mask.sum()
'''


def test_single_precision_is_no_obstacle(tmp_path):
    report = check_text(tmp_path, LOSS.format(picker="minimum"))
    [target] = report.targets
    assert (strong(report), report.skipped) == ([], ())
    assert (target.objective["surrogate"], target.objective["divergence"]) == ("min-clip", "k3")


def test_a_fault_is_found(tmp_path):
    assert strong(check_text(tmp_path, LOSS.format(picker="maximum"))) == ["SUR004"]
