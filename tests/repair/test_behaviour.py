"""Outside its fault, a repaired function gives what the original gave.

For each fault, inputs at which it can't show (Δ = log π_new − log π_old): no padding, ratio 1,
both terms alike, groups of the whole batch … There original and repaired must agree.
"""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.repairing import repair_text, run
from tests.support.trainers import trainer

from rlproof.faults.page import page

MADE = {}
numbers = st.floats(-2.5, -0.05)
advantages = st.floats(-3, 3)


def pair(tmp_path_factory, text, name):
    """The function before and after its repair."""
    if text not in MADE:
        report = repair_text(tmp_path_factory.mktemp("behaviour"), text)
        assert report.repair.status == "verified", report.repair.message
        MADE[text] = run(text)[name], run(report.repair.text)[name]
    return MADE[text]


@st.composite
def batch(draw, ratio_one=False, real=True):
    """new, old, ref (B, T), advantages (B,), mask (B, T)."""
    rows, width = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    table = st.lists(
        st.lists(numbers, min_size=width, max_size=width), min_size=rows, max_size=rows
    )
    new, old, ref = draw(table), draw(table), draw(table)
    adv = draw(st.lists(advantages, min_size=rows, max_size=rows))
    lengths = [width if real else draw(st.integers(1, width)) for _ in range(rows)]
    mask = [[int(t < n) for t in range(width)] for n in lengths]
    return new, [row[:] for row in new] if ratio_one else old, ref, adv, mask


def agree(one, other, *arguments, **settings_):
    assert other(*arguments, **settings_) == pytest.approx(one(*arguments, **settings_), rel=1e-9)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(batch())
def test_padding_without_padding(tmp_path_factory, given_):
    agree(*pair(tmp_path_factory, trainer("GERMSOC"), "grpo_loss"), *given_)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(batch(ratio_one=True, real=False))
def test_clip_at_ratio_one(tmp_path_factory, given_):
    """At ratio 1 both terms are A, so the larger is the smaller."""
    agree(*pair(tmp_path_factory, trainer("GERSKOC"), "grpo_loss"), *given_)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(batch(ratio_one=True, real=False))
def test_ratio_at_ratio_one(tmp_path_factory, given_):
    """new / old = exp(new − old) = 1 where both are equal."""
    agree(*pair(tmp_path_factory, trainer("GEMSKOC"), "grpo_loss"), *given_)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(batch(real=False), st.floats(0, 1))
def test_sign_without_advantages(tmp_path_factory, given_, beta):
    """Without advantages only the penalty is left, whose sign is right."""
    new, old, ref, adv, mask = given_
    zero = [0.0 for _ in adv]
    one, other = pair(tmp_path_factory, trainer("GERMKOC"), "grpo_loss")
    agree(one, other, new, old, ref, zero, mask, beta=beta)


rewards = st.lists(st.floats(-2, 2), min_size=2, max_size=8).filter(lambda r: max(r) - min(r) > 0.1)


@settings(max_examples=60, deadline=None)
@given(rewards)
def test_groups_of_the_whole_batch(tmp_path_factory, values):
    one, other = pair(tmp_path_factory, trainer("ERMSKOC"), "group_advantages")
    agree(one, other, values, len(values))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(rewards)
def test_eps_where_rewards_spread(tmp_path_factory, values):
    """(r − r̄)/σ and (r − r̄)/(σ + 1e-6) differ by 1e-6/σ < 3e-5, as σ > 0.1/√8 here."""
    one, other = pair(tmp_path_factory, trainer("GRMSKOC"), "group_advantages")
    assert other(values, len(values)) == pytest.approx(one(values, len(values)), rel=3e-5)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(batch(real=False), st.floats(0, 1))
def test_penalty_at_the_reference(tmp_path_factory, given_, beta):
    """k3 is 0 at the reference, whatever its sign: KLD001."""
    new, old, _, adv, mask = given_
    one, other = pair(tmp_path_factory, page("KLD001").planted, "grpo_loss")
    agree(one, other, new, old, new, adv, mask, beta=beta)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(batch(real=False))
def test_range_ignored_at_the_range_written(tmp_path_factory, given_):
    """clip(ρ, 0.8, 1.2) is the clip at clip_eps = 0.2: SUR008."""
    np = pytest.importorskip("numpy")
    new, old, _, adv, mask = given_
    one, other = pair(tmp_path_factory, page("SUR008").planted, "grpo_loss")
    arrays = [np.array(x) for x in (new, old, adv)]
    agree(one, other, *arrays, np.array(mask, dtype=bool), clip_eps=0.2)


def test_the_comparison_can_fail(tmp_path_factory):
    """The same faults do show elsewhere: with padding, off-policy, in two groups."""
    one, other = pair(tmp_path_factory, trainer("GERMSOC"), "grpo_loss")
    padded = [[-1.0, -1.0]], [[-1.0, -2.0]], [[-1.0, -1.0]], [1.0], [[1, 0]]
    assert math.dist([one(*padded)], [other(*padded)]) > 0.01
    one, other = pair(tmp_path_factory, trainer("ERMSKOC"), "group_advantages")
    assert one([0.0, 1.0, 1.0, 1.0], 2) != pytest.approx(other([0.0, 1.0, 1.0, 1.0], 2))
