"""Every point against the loop oracle, in value and in gradient, on every array library."""

from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.space import oracle
from tests.space.test_objective_points import KINDS, MASK, POINTS, batch, data, floats
from tests.support.sampling import one_in

from rlproof.space.aggregation import Scope
from rlproof.space.entropy import Entropy
from rlproof.space.filters import Filter
from rlproof.space.mismatch import Mismatch
from rlproof.space.objective import Divergence, Objective, ObjectiveError
from rlproof.space.surrogates import Clip
from rlproof.space.validity import ALLOWED

try:
    import torch
except ImportError:
    torch = None
try:
    import jax
except ImportError:
    jax = None
else:
    jax.config.update("jax_enable_x64", True)

needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
needs_jax = pytest.mark.skipif(jax is None, reason="JAX is not installed")
CLOSE = {"rel": 1e-10, "abs": 1e-10}
SAME = settings(derandomize=True, deadline=None, max_examples=250)
EVERY = pytest.mark.parametrize("name", one_in(3, POINTS))
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


@cache
def expected(name, kind):
    """The oracle's loss, and its gradient by complex steps."""
    lists = data(kind)
    return oracle.loss(POINTS[name], lists), floats(oracle.gradient(POINTS[name], lists))


def doubles(values):
    return torch.tensor(values, dtype=torch.float64)


@EVERY_KIND
@EVERY
def test_numpy_agrees(name, kind):
    value, gradient = expected(name, kind)
    made = batch(data(kind), floats)
    assert float(POINTS[name].loss(made)[0]) == pytest.approx(value, **CLOSE)
    assert POINTS[name].gradient(made) == pytest.approx(gradient, **CLOSE)


@needs_torch
@EVERY_KIND
@EVERY
def test_torch_agrees_and_so_does_autograd(name, kind):
    """Three ways to one gradient: complex steps, closed form, autograd."""
    value, gradient = expected(name, kind)
    made = batch(data(kind), doubles)
    made.new.requires_grad_()
    loss = POINTS[name].loss(made)[0]
    assert loss.item() == pytest.approx(value, **CLOSE)
    (found,) = torch.autograd.grad(loss, made.new)
    closed = POINTS[name].gradient(made)
    assert floats(closed.tolist()) == pytest.approx(gradient, **CLOSE)
    assert floats(found.tolist()) == pytest.approx(gradient, **CLOSE)


@needs_jax
@EVERY_KIND
@EVERY
def test_jax_agrees_and_so_does_its_gradient(name, kind):
    from dataclasses import replace

    value, gradient = expected(name, kind)
    made = batch(data(kind), lambda v: jax.numpy.asarray(floats(v)))
    loss, found = jax.value_and_grad(lambda new: POINTS[name].loss(replace(made, new=new))[0])(
        made.new
    )
    assert float(loss) == pytest.approx(value, **CLOSE)
    assert np.asarray(POINTS[name].gradient(made)) == pytest.approx(gradient, **CLOSE)
    assert np.asarray(found) == pytest.approx(gradient, **CLOSE)


def one_of(axis):
    return st.sampled_from(ALLOWED[axis])


CLIPS = st.sampled_from([
    Clip(0.2, 0.28, 1.5), Clip(None, 0.1), Clip(0.1, None), Clip(0.8, 1.1, 1.2, "absolute"),
    Clip(0.1, 0.3, 1.4, "log", 0.5, 2.0), Clip(None, None, 1.3, "log"),
])  # fmt: skip


def mismatches(part):
    return st.builds(
        Mismatch,
        action=one_of(f"{part}.action"),
        level=one_of(f"{part}.level"),
        low=st.sampled_from([0.0, 0.8]),
        high=st.sampled_from([1.2, 2.0]),
        carried=one_of(f"{part}.carried"),
        on_divergence=st.booleans(),
        statistic=st.sampled_from(["ratio", "ratio", *ALLOWED[f"{part}.statistic"]]),
        numerator=one_of(f"{part}.numerator"),
        negative_only=st.booleans(),
        counted=st.booleans(),
        normalised=st.booleans(),
    )


def filters():
    return st.builds(Filter, rule=one_of("filter.rule"), counted=st.booleans())


@st.composite
def anywhere(draw):
    """A point with every coordinate of the loss drawn on its own, where they do not clash."""
    maybe = st.sampled_from([None, 0.15, 0.6])
    divergence = {
        axis.partition(".")[2]: one_of(axis) for axis in ALLOWED if axis.startswith("divergence.")
    }
    try:
        return Objective(
            ratio=draw(one_of("ratio")),
            ratio_clamp=draw(maybe),
            surrogate=draw(one_of("surrogate")),
            clip=draw(CLIPS),
            filter=draw(filters()),
            mismatch=draw(mismatches("mismatch")),
            rejection=draw(st.one_of(st.just(Mismatch()), mismatches("rejection"))),
            divergence=draw(st.builds(Divergence, **divergence, clamp_in=maybe, clamp_out=maybe)),
            aggregation=draw(one_of("aggregation")),
            entropy=Entropy(
                draw(st.sampled_from([0.0, 0.1])), top_share=draw(st.sampled_from([1.0, 0.3]))
            ),
        )
    except ObjectiveError:
        return None


@pytest.mark.slow
@given(
    anywhere(), st.sampled_from(KINDS), st.integers(0, 10**6), st.booleans(),
    st.sampled_from([None, 17.0]), st.sampled_from([None, 9.0]),
)  # fmt: skip
@SAME
def test_any_point_agrees(point, kind, seed, count_empty, tokens, sequences):
    """Coordinates in any combination, on random batches, with and without given denominators."""
    assume(point is not None)
    lists = data(kind, seed=seed, scope=Scope(tokens, sequences, 8.0, count_empty))
    made = batch(lists, floats)
    gradient = floats(oracle.gradient(point, lists))
    assert float(point.loss(made)[0]) == pytest.approx(oracle.loss(point, lists), **CLOSE)
    assert point.gradient(made) == pytest.approx(gradient, **CLOSE)
    if torch is not None:
        made = batch(lists, doubles)
        made.new.requires_grad_()
        (found,) = torch.autograd.grad(point.loss(made)[0], made.new, allow_unused=True)
        assert floats(found.tolist()) == pytest.approx(gradient, **CLOSE)


def test_oracle_by_hand():
    """One token of ratio 1.5, A = 2, bounds 0.8 and 1.2: −1.2·2 = −2.4, flat; β·k3 on top.

    With log π_ref − log π = ln 2: k3 = 2 − ln 2 − 1 = 0.306853, its slope 1 − 2 = −1.
    """
    lists = {
        "new": [[-1.0]],
        "old": [[-1.0 - np.log(1.5)]],
        "ref": [[-1.0 + np.log(2.0)]],
        "advantages": [2.0],
        "mask": [[1]],
        "scope": Scope(),
    }
    point = Objective(divergence=Divergence("loss", coefficient=0.1))
    assert oracle.loss(point, lists) == pytest.approx(-2.4 + 0.0306853, abs=1e-6)
    assert oracle.gradient(point, lists)[0] == pytest.approx([-0.1])


def test_metrics_by_hand():
    """Ratios 1.5, 1, 0.5 and bounds 0.8, 1.2: two of three outside, mean 1. Divergence in nats,

    without β: k1 to a reference 0.3 below the policy.
    """
    new = np.full((2, 2), -1.0)
    point = Objective(divergence=Divergence("loss", estimator="k1", coefficient=0.04))
    lists = {
        "new": new,
        "old": new - np.log([[1.5, 1.0], [0.5, 9.0]]),
        "ref": new - 0.3,
        "advantages": np.ones(2),
        "mask": np.array([[1, 1], [1, 0]]),
        "scope": Scope(),
    }
    logged = point.loss(batch(lists, np.asarray))[1]
    assert {key: float(value) for key, value in logged.items()} == pytest.approx(
        {"clip_fraction": 2 / 3, "ratio_mean": 1.0, "divergence_mean": 0.3, "tokens": 3.0}
    )


def test_masks_of_any_type_agree():
    made = [batch(data(), floats) for _ in range(2)]
    lists = data()
    losses = []
    for dtype in (bool, np.int64, np.float32):
        lists["mask"] = np.array(MASK, dtype=dtype)
        losses.append(float(POINTS["k3"].loss(batch(lists, np.asarray))[0]))
    assert losses == [float(POINTS["k3"].loss(made[0])[0])] * 3
