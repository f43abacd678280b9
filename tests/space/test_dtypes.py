"""What comes out has the type of what went in, is finite, and is as exact as the type allows.

All inputs of one type give a result of that type. Log-probs in 16 bits with advantages in 32 are
promoted, as the array library promotes them. Denominators are counted in 32 bits at least.
"""

import numpy as np
import pytest
from tests.space.test_objective_advantages import IDS, LENGTHS, REWARDS
from tests.space.test_objective_points import ADVANTAGES, KINDS, POINTS, batch, data, floats
from tests.support.sampling import one_in

from rlproof.space.advantages import advantages
from rlproof.space.aggregation import PUBLISHED, Scope, slot_weights
from rlproof.space.objective import Batch

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
EVERY = pytest.mark.parametrize("name", one_in(4, POINTS))
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
EVERY_ADVANTAGE = pytest.mark.parametrize("name", [n for n in ADVANTAGES if n != "strict"])
# Unit roundoff times the length of the longest chain of operations here, about 64.
TOLERANCE = {"bfloat16": 64 * 2**-9, "float16": 64 * 2**-12, "float32": 64 * 2**-25}
TORCH_TYPES = pytest.mark.parametrize("dtype", list(TOLERANCE))
NUMPY_TYPES = pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])


def rounded(name):
    """What turns nested lists into tensors of a type."""
    return lambda values: torch.tensor(values, dtype=getattr(torch, name))


def widened(made):
    """The same numbers in float64, so that only the arithmetic differs."""
    names = ("new", "old", "ref", "sampler", "entropy", "advantages", "mask", "kept")
    parts = {name: getattr(made, name) for name in names}
    parts = {k: None if v is None else v.detach().double() for k, v in parts.items()}
    return Batch(**parts, scope=made.scope, groups=made.groups)


@needs_torch
@TORCH_TYPES
@EVERY_KIND
@EVERY
def test_torch_keeps_the_type(name, kind, dtype):
    """Loss, log and both gradients; values are finite and near those in float64."""
    made = batch(data(kind), rounded(dtype))
    wanted, tolerance = getattr(torch, dtype), TOLERANCE[dtype]
    made.new.requires_grad_()
    loss, logged = POINTS[name].loss(made)
    (found,) = torch.autograd.grad(loss, made.new)
    closed = POINTS[name].gradient(made)
    results = [loss, found, closed, *logged.values()]
    assert {result.dtype for result in results} == {wanted}
    assert all(result.isfinite().all() for result in results)
    exact = widened(made)
    scale = 1 + POINTS[name].gradient(exact).abs().sum().item()
    assert abs(loss.item() - POINTS[name].loss(exact)[0].item()) <= tolerance * scale
    near = (found.double() - closed.double()).abs().max().item()
    assert near <= tolerance * scale


@NUMPY_TYPES
@EVERY
def test_numpy_keeps_the_type(name, dtype):
    made = batch(data(), lambda values: np.array(values, dtype=dtype))
    loss, logged = POINTS[name].loss(made)
    results = [loss, POINTS[name].gradient(made), *logged.values()]
    assert {result.dtype for result in results} == {np.dtype(dtype)}
    assert all(np.isfinite(result).all() for result in results)


@pytest.mark.parametrize("mask", [bool, np.int64, np.float64])
@EVERY
def test_type_of_the_mask_does_not_matter(name, mask):
    made = batch(data(), lambda values: np.array(values, dtype=np.float32))
    made = Batch(**{
        key: getattr(made, key) for key in made.__dataclass_fields__ if key != "mask"
    }, mask=made.mask.astype(mask))  # fmt: skip
    assert POINTS[name].loss(made)[0].dtype == np.float32
    assert POINTS[name].gradient(made).dtype == np.float32


@EVERY
def test_denominators_of_any_type_do_not_promote(name):
    scope = Scope(np.int64(16), np.int64(5), 8)
    made = batch(data(scope=scope), lambda values: np.array(values, dtype=np.float32))
    assert POINTS[name].loss(made)[0].dtype == np.float32
    assert POINTS[name].gradient(made).dtype == np.float32


@needs_torch
def test_mixed_types_are_promoted_as_the_library_does():
    """bfloat16 log-probs and float32 advantages: float32, in loss and closed form."""
    lists = data()
    made = batch(lists, rounded("bfloat16"))
    wide = batch(lists, rounded("float32")).advantages
    made = Batch(made.new, wide, made.mask, made.old, scope=made.scope)
    assert POINTS["min-clip"].loss(made)[0].dtype == torch.float32
    assert POINTS["min-clip"].gradient(made).dtype == torch.float32


@NUMPY_TYPES
@EVERY_ADVANTAGE
def test_numpy_advantages_keep_the_type(name, dtype):
    """Integer lengths do not widen them."""
    found = advantages(np.array(REWARDS, dtype=dtype), IDS, ADVANTAGES[name], np.array(LENGTHS))
    exact = advantages(floats(REWARDS), IDS, ADVANTAGES[name], np.array(LENGTHS))
    assert found.dtype == dtype
    assert found == pytest.approx(exact, abs=200 * float(np.finfo(dtype).eps))


@needs_torch
@TORCH_TYPES
@EVERY_ADVANTAGE
def test_torch_advantages_keep_the_type(name, dtype):
    """200 roundings, for the rewards here are at most 1 and the spreads at least 0.1."""
    rewards = rounded(dtype)(REWARDS)
    found = advantages(rewards, IDS, ADVANTAGES[name], torch.tensor(LENGTHS))
    exact = advantages(rewards.double(), IDS, ADVANTAGES[name], torch.tensor(LENGTHS))
    assert found.dtype == rewards.dtype
    eps = torch.finfo(rewards.dtype).eps
    assert floats(found.tolist()) == pytest.approx(floats(exact.tolist()), abs=200 * eps)


@needs_torch
@TORCH_TYPES
@EVERY_ADVANTAGE
def test_equal_rewards_stay_finite_where_eps_underflows(name, dtype):
    """1e-8 is 0 in float16, so that 0 would be divided by 0."""
    rewards = torch.full((6,), 0.1, dtype=getattr(torch, dtype))
    found = advantages(rewards, 3, ADVANTAGES[name], torch.full((6,), 4))
    assert found.isfinite().all()
    if ADVANTAGES[name].baseline != "none":
        assert not found.any()


@pytest.mark.parametrize("rewards", [[1, 0.1, 0.1, 0.1], [0.7, 0.7, 0.7, 0.1]])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_equal_others_have_no_spread_in_any_type(rewards, dtype):
    """NeMo-RL leaves a row unscaled where the others are equal; rounding must not hide that."""
    found = advantages(np.array(rewards, dtype=dtype), 4, ADVANTAGES["nemo"])
    odd = 0 if rewards[0] == 1 else 3
    others = 0.1 if odd == 0 else 0.7
    assert found[odd] == pytest.approx(rewards[odd] - others, abs=4 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("name", list(PUBLISHED))
def test_tokens_are_counted_exactly(name, dtype):
    """70 000 tokens are more than float16 can hold; their weights are not."""
    mask = np.ones((2, 35_000))
    exact = slot_weights(mask, name, Scope(length=100.0))
    found = slot_weights(mask.astype(dtype), name, Scope(length=100.0))
    assert found.dtype == dtype
    assert (abs(found - exact) <= 1e-2 * exact).all()  # 1/70 000 has 8 bits left in float16


@needs_torch
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_masked_padding_of_extreme_values_is_finite(dtype):
    extreme = {"bfloat16": 3e38, "float16": 6e4}[dtype]
    lists = data()
    make = rounded(dtype)
    made = batch(lists, lambda v: torch.nan_to_num(make(v), nan=extreme))
    for point in POINTS.values():
        assert point.loss(made)[0].isfinite()
        assert point.gradient(made).isfinite().all()
