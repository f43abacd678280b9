"""The probes of a loss: shapes, and what they see of a loss in closed form."""

import math

import numpy as np
import pytest
from tests.support.fakes import PointLoss

from rlproof.bind.loss import LossImplementation
from rlproof.bind.sandbox import Sandbox
from rlproof.probe.loss import EPS, EXTRA, LENGTHS, OTHER_EPS, WIDTH, everything, observe, one_token
from rlproof.read.names import Slot
from rlproof.read.script import read
from rlproof.read.targets import Role

POINT = {
    "ratio": "token",
    "surrogate": "min-clip",
    "surrogate_weight": -1.0,
    "factor": 1.0,
    "divergence": "k3",
    "divergence_weight": 1.0,
    "beta_from": "arguments",
    "clip_low": 0.2,
    "clip_high": 0.2,
    "clip_from": "arguments",
    "aggregation": "token-mean",
    "padding": "masked",
    "level": "token",
}
B = len(LENGTHS)


@pytest.fixture(scope="module")
def seen():
    return observe(PointLoss(POINT))


def test_shapes(seen):
    """Two old log-probs × eight steps × two signs, four far points × four advantages: 48."""
    grid = seen.surrogate
    assert {
        len(part) for part in (grid.new, grid.old, grid.ref, grid.adv, grid.value, grid.slope)
    } == {48}
    assert len(seen.divergence.value) == 8  # two log-probs × four steps
    assert seen.weights.mask.shape == seen.weights.surrogate.shape == (B, WIDTH)
    assert seen.wider.divergence.shape == (B, WIDTH + EXTRA)
    assert seen.weights.mask.sum(1).tolist() == list(LENGTHS)
    assert np.shape(seen.pair[1].gradient) == (1, 2)
    assert np.shape(seen.full[1].gradient) == (B, WIDTH)


@pytest.mark.parametrize("eps", [EPS, OTHER_EPS])
def test_surrogate_grid_is_the_formula(seen, eps):
    """L = −min(ρA, clip(ρ)A), written out per point; no penalty, for β = 0."""
    grid = seen.surrogate if eps == EPS else seen.other_clip
    for new, old, adv, value in zip(grid.new, grid.old, grid.adv, grid.value, strict=True):
        ratio = math.exp(new - old)
        clipped = min(max(ratio, 1 - eps), 1 + eps)
        assert value == pytest.approx(-min(ratio * adv, clipped * adv))


def test_no_probe_is_at_a_kink(seen):
    for grid, eps in ((seen.surrogate, EPS), (seen.other_clip, OTHER_EPS)):
        ratios = np.exp(grid.new - grid.old)
        for kink in (1 - eps, 1 + eps, 3.0):
            assert np.abs(ratios - kink).min() > 1e-2
    batch = everything()
    ratios = np.exp(np.array(batch.new) - np.array(batch.old))
    for kink in (1 - EPS, 1 + EPS):
        assert np.abs(ratios - kink).min() > 1e-2


def test_grid_leaves_the_clip_range_on_both_sides(seen):
    ratios = np.exp(seen.surrogate.new - seen.surrogate.old)
    assert ratios.min() < 0.1  # e^−3
    assert ratios.max() > 10  # e^2.4, beyond any cap
    assert set(seen.surrogate.adv) == {1.0, -1.0, 2.0, -2.0}


def test_divergence_grid(seen):
    """k3 at β = 1, A = 0: e^x − x − 1 with x = log π_ref − log π_new; twice that at β = 2."""
    x = seen.divergence.ref - seen.divergence.new
    assert seen.divergence.value == pytest.approx(np.exp(x) - x - 1)
    assert seen.divergence.slope == pytest.approx(1 - np.exp(x))
    assert seen.other_beta == pytest.approx(2.0)


def test_weights_and_unit(seen):
    """Six real tokens: −1/6 each; one token alone: −1. The pull of k3 at x = ½ is (1 − e^½)/6."""
    mask = seen.weights.mask
    assert seen.unit == pytest.approx(-1.0)
    assert seen.weights.surrogate == pytest.approx(-mask / 6)
    assert seen.weights.divergence == pytest.approx(mask * (1 - math.exp(0.5)) / 6)
    assert seen.wider.surrogate[:, :WIDTH] == pytest.approx(seen.weights.surrogate)


def test_everything_is_off_policy_and_the_same_each_time():
    batch = everything()
    assert batch == everything()
    assert (np.array(batch.new) != np.array(batch.old)).all()
    assert np.exp(np.array(batch.new) - np.array(batch.old)).max() > 1.2
    assert [sum(row) for row in batch.mask] == list(LENGTHS)
    assert sum(map(sum, everything(masked=False).mask)) == B * WIDTH


def test_one_token():
    batch = one_token(-1.0, -1.2, 0.5, beta=0.3)
    assert (batch.new, batch.old, batch.ref) == ([[-1.0]], [[-1.2]], [[-1.0]])
    assert (batch.advantages, batch.mask, batch.beta) == ([0.5], [[1]], 0.3)


def test_push_where_the_loss_is_flat_for_positive_advantages():
    """Some faulty surrogates are: their tokens have a slope at A = −1 only."""

    class Flat(PointLoss):
        def run(self, batch):
            answer = super().run(batch)
            flat = batch.advantages[0] > 0
            return (
                type(answer)(answer.value, [[0.0] * len(r) for r in answer.gradient])
                if flat
                else answer
            )

    seen = observe(Flat(POINT))
    assert seen.unit == pytest.approx(-1.0)  # measured at A = −1: slope +1, per unit −1
    assert seen.weights.surrogate == pytest.approx(-seen.weights.mask / 6)  # per unit, too


LISTS = """\
import math

def loss(logp, old_logp, advantages, mask):
    total = 0.0
    for i, a in enumerate(advantages):
        for t, m in enumerate(mask[i]):
            if m:
                total -= math.exp(logp[i][t] - old_logp[i][t]) * a
    return total / sum(map(sum, mask))
"""


def test_script_in_the_sandbox(tmp_path):
    """A loss over lists without clip, reference or β: gradients by differences, no such grids."""
    path = tmp_path / "script.py"
    path.write_text(LISTS, encoding="utf-8")
    script = read(str(path))
    with Sandbox(script.source) as sandbox:
        loss = LossImplementation(script, script.of(Role.LOSS)[0], sandbox, False)
        seen = observe(loss)
    assert not loss.target.has(Slot.CLIP)
    assert (seen.other_clip, seen.divergence, seen.other_beta) == (None, None, None)
    ratios = np.exp(seen.surrogate.new - seen.surrogate.old)
    assert seen.surrogate.value == pytest.approx(-ratios * seen.surrogate.adv)
    assert seen.surrogate.slope == pytest.approx(seen.surrogate.value, abs=1e-6)
    assert seen.weights.surrogate == pytest.approx(-seen.weights.mask / 6, abs=1e-7)
