"""Advantages of flat batches: against the oracle, by hand, and by their properties."""

import random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.space import oracle
from tests.space.test_objective_points import ADVANTAGES

from rlproof.space.advantages import (
    BASELINE_NAMES,
    CLIP_PLACES,
    COMBINATIONS,
    EPS_PLACES,
    SCALE_NAMES,
    SINGLETONS,
    WHITENINGS,
    ZERO_VARIANCE,
    Advantage,
    advantages,
)
from rlproof.space.objective import Objective

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

SAME = settings(derandomize=True, deadline=None)
CLOSE = {"rel": 1e-10, "abs": 1e-10}
EVERY = pytest.mark.parametrize("name", list(ADVANTAGES))
MAKERS = {
    "numpy": lambda values: np.array(values, dtype=np.float64),
    "torch": lambda values: torch.tensor(values, dtype=torch.float64),
    "jax": lambda values: jax.numpy.asarray(np.array(values, dtype=np.float64)),
}
LIBRARIES = [
    "numpy",
    pytest.param("torch", marks=pytest.mark.skipif(torch is None, reason="no PyTorch")),
    pytest.param("jax", marks=pytest.mark.skipif(jax is None, reason="JAX is not installed")),
]
# Groups of 4, 3, 2 and 1 members, in disorder; the group of 7 has no spread.
REWARDS = [0.3, 1.0, 0.1, 0.0, 0.7, 0.1, -0.4, 0.9, 0.1, 0.5]
IDS = [9, 2, 7, 9, 2, 7, 9, 5, 7, 9]
LENGTHS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]
EXECUTED = [1.0, 0, 0, 0, 1, 1, 0, 0.3]


def both(how, rewards, groups, lengths=None):
    """The library's advantages on NumPy, and the oracle's."""
    given = None if lengths is None else np.array(lengths)
    found = advantages(np.array(rewards, dtype=float), groups, how, given)
    return found, oracle.advantages(how, rewards, groups, lengths)


@pytest.mark.parametrize("library", LIBRARIES)
@EVERY
def test_every_point_agrees(name, library):
    how, make = ADVANTAGES[name], MAKERS[library]
    rewards, ids, lengths = REWARDS, IDS, LENGTHS
    if how.singleton == "error":
        keep = [i for i, one in enumerate(IDS) if one != 5]
        rewards, ids, lengths = ([part[i] for i in keep] for part in (REWARDS, IDS, LENGTHS))
    found = advantages(make(rewards), ids, how, make(lengths))
    expected = oracle.advantages(how, rewards, ids, lengths)
    assert np.asarray(found.tolist()) == pytest.approx(expected, **CLOSE)
    assert Objective(advantage=how).advantages(make(rewards), ids, make(lengths)).tolist() == (
        found.tolist()
    )


@given(
    how=st.builds(
        Advantage,
        baseline=st.sampled_from(BASELINE_NAMES),
        scale=st.sampled_from(SCALE_NAMES),
        eps=st.sampled_from([0.0, 1e-6, 0.1]),
        eps_place=st.sampled_from(EPS_PLACES),
        zero_variance=st.sampled_from(ZERO_VARIANCE),
        singleton=st.sampled_from([one for one in SINGLETONS if one != "error"]),
        whiten=st.sampled_from(WHITENINGS),
        whiten_sample=st.booleans(),
        whiten_eps=st.just(1e-2),
        whiten_eps_place=st.sampled_from(EPS_PLACES),
        clip=st.sampled_from([None, 0.8]),
        clip_place=st.sampled_from(CLIP_PLACES),
        combine=st.sampled_from(COMBINATIONS),
        reward_weights=st.sampled_from([None, (0.5,)]),
        reward_clip=st.sampled_from([None, (0.25, 0.75)]),
    ),
    rewards=st.lists(st.integers(0, 10).map(lambda n: n / 10), min_size=1, max_size=9),
    seed=st.integers(0, 10**6),
)
@settings(SAME, max_examples=300)
def test_any_point_agrees(how, rewards, seed):
    """Tenths are not exact in binary: equal rewards must count as equal all the same."""
    rng = random.Random(seed)
    ids = [rng.choice("abc") for _ in rewards]
    least = 1 if how.baseline == "length-weighted-mean" else 0  # a mean over no token is none
    lengths = [rng.randint(least, 5) for _ in rewards]
    assume(sum(lengths) > 0)
    found, expected = both(how, rewards, ids, lengths)
    assert np.isfinite(found).all()
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "by_hand"),
    # Printed by the frameworks for EXECUTED in groups of 4: verl and tunix (ddof 1), rLLM (ddof 0),
    # NeMo-RL, and the centred rewards of open-instruct.
    [
        ("grpo sample", [1.5, -0.5, -0.5, -0.5, 0.840, 0.840, -1.137, -0.544]),
        ("grpo", [1.732, -0.577, -0.577, -0.577, 0.970, 0.970, -1.313, -0.628]),
        ("nemo", [1.0, -0.577, -0.577, -0.577, 1.104, 1.104, -1.897, -0.635]),
        ("dr-grpo", [0.75, -0.25, -0.25, -0.25, 0.425, 0.425, -0.575, -0.275]),
    ],
)
def test_as_the_frameworks_print_them(name, by_hand):
    found = advantages(np.array(EXECUTED), 4, ADVANTAGES[name])
    assert found == pytest.approx(by_hand, abs=6e-4)


def test_rloo_by_hand():
    """1 − 0, and 0 − 1/3 three times."""
    found = advantages(np.array(EXECUTED[:4]), 4, ADVANTAGES["rloo"])
    assert found == pytest.approx([1, -1 / 3, -1 / 3, -1 / 3])


def test_opo_by_hand():
    """(1·1 + 3·0)/(1 + 3) = 1/4."""
    found = advantages(np.array([1.0, 0.0]), 2, ADVANTAGES["opo"], np.array([1, 3]))
    assert found == pytest.approx([0.75, -0.25])


def test_gpg_by_hand():
    """Four of eight rows have a centred reward other than 0: ×8/4."""
    rewards = np.array([1.0, 0, 0, 0, 0.1, 0.1, 0.1, 0.1])
    found = advantages(rewards, 4, ADVANTAGES["gpg"])
    assert found == pytest.approx([1.5, -0.5, -0.5, -0.5, 0, 0, 0, 0])


def test_maxrl_by_hand():
    """(r − r̄)/(r̄ + eps), here with eps 0: (1 − 1/4)/(1/4) = 3."""
    found = advantages(np.array(EXECUTED[:4]), 4, Advantage(scale="group-mean", eps=0.0))
    assert found == pytest.approx([3, -1, -1, -1])


@pytest.mark.parametrize("sample", [True, False])
def test_whitening_by_hand(sample):
    """Rewards 0 and 2 with 3 tokens and 1: mean 1/2, squares 3·1/4 + 9/4 = 3, over 3 or 4.

    By sequence: mean 1, squares 2, over 1 or 2.
    """
    token = Advantage("none", "none", whiten="token", whiten_sample=sample, whiten_eps=0.0)
    found = advantages(np.array([0.0, 2.0]), [0, 1], token, np.array([3, 1]))
    spread = np.sqrt(3 / 3) if sample else np.sqrt(3 / 4)
    assert found == pytest.approx([-0.5 / spread, 1.5 / spread])
    sequence = Advantage("none", "none", whiten="sequence", whiten_sample=sample, whiten_eps=0.0)
    spread = np.sqrt(2.0) if sample else 1.0
    assert advantages(np.array([0.0, 2.0]), [0, 1], sequence) == pytest.approx(
        [-1 / spread, 1 / spread]
    )


@pytest.mark.parametrize("value", [0.1, 0.7, 1.0, 1e6 + 0.1])
@pytest.mark.parametrize("members", [2, 3, 7])
@pytest.mark.parametrize(
    "name", [n for n, how in ADVANTAGES.items() if how.baseline != "none" or how.whiten != "none"]
)
def test_no_spread_no_advantage(name, members, value):
    """Equal rewards in every group: 0 whatever the eps, whatever a mean of them rounds to."""
    count = 2 * members
    found = advantages(np.full(count, value), members, ADVANTAGES[name], np.full(count, 3))
    assert found.tolist() == [0.0] * count


@pytest.mark.parametrize("scale", ["leave-one-out-std", "population-std", "none"])
def test_single_member(scale):
    """verl: the raw reward; mlx, NeMo-RL: 0."""
    rewards, ids = np.array([3.0, 1.0, 2.0]), ["a", "b", "b"]
    zero = advantages(rewards, ids, Advantage("leave-one-out", scale))
    raw = advantages(rewards, ids, Advantage("leave-one-out", scale, singleton="raw"))
    assert (zero[0], raw[0]) == (0.0, 3.0)
    assert zero[1:].tolist() == raw[1:].tolist()


def test_single_member_of_a_batch_statistic():
    """Nothing is taken over the group, so one completion a prompt is as good as four."""
    how = Advantage("batch-mean", "batch-population-std", eps=0.0)
    one_each = advantages(np.array(EXECUTED), 1, how)
    assert one_each == pytest.approx(advantages(np.array(EXECUTED), 4, how))
    assert one_each.std() == pytest.approx(1)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    "groups", [2, np.int64(2), [7, 7, 3, 3], ["x", "x", "y", "y"], np.array([1, 1, 0, 0])]
)
def test_groups_may_be_given_in_any_form(library, groups):
    found = advantages(MAKERS[library]([1.0, 0.0, 0.0, 0.5]), groups, Advantage(scale="none"))
    assert found.tolist() == [0.5, -0.5, -0.25, 0.25]
    arrays = MAKERS[library]([1.0, 1.0, 2.0, 2.0])
    assert advantages(MAKERS[library]([1.0, 0.0, 0.0, 0.5]), arrays, Advantage(scale="none")
                      ).tolist() == found.tolist()  # fmt: skip


@pytest.mark.parametrize("dtype", [bool, np.int64, np.int8])
def test_rewards_may_be_integers(dtype):
    found = advantages(np.array([1, 0, 0, 1], dtype=dtype), 2, Advantage(scale="none"))
    assert found.tolist() == [0.5, -0.5, -0.5, 0.5]


def test_one_broken_reward_stays_in_its_group():
    found = advantages(np.array([np.nan, 1.0, 1.0, 0.0]), 2, Advantage(scale="none"))
    assert np.isnan(found[:2]).all()
    assert found[2:].tolist() == [0.5, -0.5]


@EVERY
def test_no_rewards(name):
    none = np.zeros(0)
    assert advantages(none, [], ADVANTAGES[name], none).shape == (0,)


@pytest.mark.parametrize("name", [name for name in ADVANTAGES if name != "strict"])
def test_order_of_rows_does_not_matter(name):
    """Every point but the one that refuses the group of one in this batch."""
    how = ADVANTAGES[name]
    order = random.Random(3).sample(range(10), 10)
    rewards, ids, lengths = map(np.array, (REWARDS, IDS, LENGTHS))
    moved = advantages(rewards[order], ids[order], how, lengths[order])
    assert moved == pytest.approx(advantages(rewards, ids, how, lengths)[order], **CLOSE)


# Quarters up to 25, exact in binary also after the shifts below.
REWARD_LISTS = st.lists(st.integers(0, 100).map(lambda n: n / 4), min_size=6, max_size=10)
CENTRED = [name for name, how in ADVANTAGES.items() if how.baseline != "none"]
SHIFTABLE = [
    name
    for name in CENTRED
    for how in (ADVANTAGES[name],)
    if how.scale != "group-mean" and how.singleton == "zero" and how.reward_clip is None
]
STD = [name for name in SCALE_NAMES if name.endswith("-std")]


@pytest.mark.parametrize("name", SHIFTABLE)
@given(rewards=REWARD_LISTS, shift=st.integers(-50, 50), seed=st.integers(0, 99))
@settings(SAME, max_examples=40)
def test_shift_changes_nothing(name, rewards, shift, seed):
    ids = [random.Random(seed + i).randint(0, 2) for i in range(len(rewards))]
    lengths = np.array([1 + i % 3 for i in range(len(rewards))])
    before = advantages(np.array(rewards), ids, ADVANTAGES[name], lengths)
    after = advantages(np.array(rewards) + shift, ids, ADVANTAGES[name], lengths)
    assert after == pytest.approx(before, abs=1e-7)


@pytest.mark.parametrize("scale", [*STD, "group-mean"])
@pytest.mark.parametrize("baseline", BASELINE_NAMES)
@given(rewards=REWARD_LISTS, factor=st.floats(0.1, 10))
@settings(SAME, max_examples=30)
def test_factor_changes_nothing_without_eps(scale, baseline, rewards, factor):
    """Where there is a spread; x/0 is left as x."""
    how = Advantage(baseline, scale, eps=0.0)
    ids = [i % 2 for i in range(len(rewards))]
    values, lengths = np.array(rewards), np.arange(len(rewards)) + 1
    for one in range(2):
        members = values[one::2]
        assume(len(members) > 2 and len(set(members)) == len(members) and members.mean() > 0.1)
    before = advantages(values, ids, how, lengths)
    after = advantages(values * factor, ids, how, lengths)
    assert after == pytest.approx(before, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("scale", ["none", "population-std", "sample-std"])
@pytest.mark.parametrize("baseline", ["group-mean", "leave-one-out"])
@given(rewards=REWARD_LISTS, seed=st.integers(0, 99))
@settings(SAME, max_examples=40)
def test_groups_sum_to_zero(scale, baseline, rewards, seed):
    ids = np.array([random.Random(seed + i).randint(0, 2) for i in range(len(rewards))])
    found = advantages(np.array(rewards), ids, Advantage(baseline, scale))
    for one in set(ids.tolist()):
        assert found[ids == one].sum() == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("whiten", ["sequence", "token"])
@given(rewards=REWARD_LISTS)
@settings(SAME, max_examples=40)
def test_whitened_batches_have_mean_zero_and_unit_spread(whiten, rewards):
    assume(len(set(rewards)) > 1)
    how = Advantage("none", "none", whiten=whiten, whiten_sample=False, whiten_eps=0.0)
    lengths = np.arange(len(rewards)) + 1
    found = advantages(np.array(rewards), [0] * len(rewards), how, lengths)
    weight = lengths if whiten == "token" else np.ones(len(rewards))
    assert np.average(found, weights=weight) == pytest.approx(0, abs=1e-9)
    assert np.average(found**2, weights=weight) == pytest.approx(1)
