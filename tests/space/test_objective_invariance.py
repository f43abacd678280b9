"""What a loss must not depend on: padding, the order of rows, and how a batch is split."""

from itertools import pairwise
from math import inf, nan

import numpy as np
import pytest
from tests.space.test_objective_points import KINDS, MASK, POINTS, batch, data, floats
from tests.support.sampling import one_in

from rlproof.space.aggregation import Scope
from rlproof.space.objective import Batch, Objective

EVERY = pytest.mark.parametrize("name", one_in(4, POINTS))
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
CLOSE = {"rel": 1e-10, "abs": 1e-12}
WHOLE = Scope(
    tokens=float(sum(map(sum, MASK))), sequences=float(len(MASK)), prompts=2.0, length=8.0,
    mean_weight=0.9, entropy_threshold=1.2,
)  # fmt: skip
BY_PROMPT = {name for name, p in POINTS.items() if "prompt-mean" in p.coordinates().values()}
UNCOUNTED = {
    name
    for name, p in POINTS.items()
    if (p.filter.rule != "none" and not p.filter.counted)
    or not (p.mismatch.counted and p.rejection.counted)
}
"""Points that take tokens out of the denominators of the batch at hand."""
PER_ROW = ("new", "old", "ref", "sampler", "entropy", "mask")
SUMS = ("sum", "per-token", "constant")


def rows(lists, order):
    """The rows of a batch in another order, or some of them, or some twice."""
    return {
        key: value if key == "scope" or value is None else [value[i] for i in order]
        for key, value in lists.items()
    }


def value_and_gradient(name, lists):
    made = batch(lists, floats)
    return float(POINTS[name].loss(made)[0]), POINTS[name].gradient(made)


@EVERY_KIND
@EVERY
def test_padding_may_hold_anything(name, kind):
    lists = data(kind)
    value, gradient = value_and_gradient(name, lists)
    wide = dict(lists)
    for key in (*PER_ROW, *(["advantages"] if kind == "tokens" else [])):
        if lists[key] is not None:
            garbage = [0, 0, 0] if key == "mask" else [nan, inf, -inf]
            wide[key] = [garbage + row + garbage for row in lists[key]]
    wide_value, wide_gradient = value_and_gradient(name, wide)
    assert wide_value == pytest.approx(value, **CLOSE)
    assert wide_gradient[:, 3:-3] == pytest.approx(gradient, **CLOSE)
    assert not wide_gradient[:, :3].any()
    assert not wide_gradient[:, -3:].any()
    assert not gradient[np.array(MASK) == 0].any()


@EVERY_KIND
@EVERY
def test_order_of_rows_does_not_matter(name, kind):
    order = [3, 0, 4, 2, 1]
    value, gradient = value_and_gradient(name, data(kind))
    other, moved = value_and_gradient(name, rows(data(kind), order))
    assert other == pytest.approx(value, **CLOSE)
    assert moved == pytest.approx(gradient[order], **CLOSE)


@EVERY
def test_a_batch_twice(name):
    """Under the denominators of one copy, a loss is twice as large; means of both are the mean."""
    twice = [0, 1, 2, 3, 4] * 2

    def copies(**given):
        """The second copy is one of other prompts."""
        lists = rows(data(**given), twice)
        return lists | {"groups": [g + 9 * (i >= 5) for i, g in enumerate(lists["groups"])]}

    value, gradient = value_and_gradient(name, data(scope=WHOLE))
    doubled, repeated = value_and_gradient(name, copies(scope=WHOLE))
    assert doubled == pytest.approx(2 * value, **CLOSE)
    assert repeated == pytest.approx(gradient[twice], **CLOSE)
    point = POINTS[name]
    names = {point.aggregation, point.divergence.aggregation, point.entropy.aggregation}
    if names.isdisjoint(SUMS):
        assert value_and_gradient(name, copies())[0] == pytest.approx(
            value_and_gradient(name, data())[0], **CLOSE
        )


@pytest.mark.parametrize("sizes", [[5], [1] * 5, [3, 2], [1, 4], [2, 1, 2]])
@EVERY
def test_split_does_not_matter_under_given_denominators(name, sizes):
    """1×N, N×1 and uneven micro-batches: losses add up, gradients are the same rows.

    One of the micro-batches holds nothing but an empty row. A mean over the tokens of a prompt
    needs them in one micro-batch, and is another number otherwise.
    """
    value, gradient = value_and_gradient(name, data(scope=WHOLE))
    edges = np.cumsum([0, *sizes])
    parts = [
        value_and_gradient(name, rows(data(scope=WHOLE), range(a, b))) for a, b in pairwise(edges)
    ]
    if name in BY_PROMPT and not {0, *np.cumsum(sizes)} <= {0, 2, 3, 5}:  # row 2 is empty
        assert sum(part for part, _ in parts) != pytest.approx(value, **CLOSE)
        return
    assert sum(part for part, _ in parts) == pytest.approx(value, **CLOSE)
    assert np.concatenate([part for _, part in parts]) == pytest.approx(gradient, **CLOSE)


@pytest.mark.parametrize("count_empty", [True, False])
@pytest.mark.parametrize("name", [name for name in POINTS if name not in UNCOUNTED])
def test_given_denominators_of_the_batch_itself_change_nothing(name, count_empty):
    sequences = 5 if count_empty else 4
    given = Scope(WHOLE.tokens, sequences, 8.0, count_empty)
    own = Scope(length=8.0, count_empty=count_empty)
    assert value_and_gradient(name, data(scope=given))[0] == pytest.approx(
        value_and_gradient(name, data(scope=own))[0], **CLOSE
    )


def test_token_mean_of_micro_batches_is_not_the_token_mean():
    """The documented counterexample. Lengths 1 and 3, advantages 1 and −1, all ratios 1.

    Whole: −(1·1 + 3·(−1))/4 = 0.5. Row by row: the mean of −1 and 1, that is 0. The weight of
    the single token grows from 1/4 to 1/2, that of each of the others shrinks to 1/6.
    """
    zeros, mask = np.zeros((2, 3)), np.array([[1, 0, 0], [1, 1, 1]])
    made = Batch(new=zeros, advantages=np.array([1.0, -1.0]), mask=mask, old=zeros)
    point = Objective(aggregation="token-mean")
    single = [Batch(zeros[:1], made.advantages[i : i + 1], mask[i : i + 1]) for i in range(2)]
    assert float(point.loss(made)[0]) == pytest.approx(0.5)
    assert point.gradient(made)[:, 0] == pytest.approx([-1 / 4, 1 / 4])
    assert sum(float(point.loss(one)[0]) for one in single) / 2 == 0.0
    gradients = [float(point.gradient(one)[0, 0]) / 2 for one in single]
    assert gradients == pytest.approx([-1 / 2, 1 / 6])


@pytest.mark.parametrize("count_empty", [True, False])
@EVERY
def test_nothing_real_is_a_loss_of_zero(name, count_empty):
    """All slots masked, whatever they hold: loss 0, gradient 0, and no warning on the way."""
    lists = data(mask=[[0] * 4] * 3, scope=Scope(length=8.0, count_empty=count_empty))
    value, gradient = value_and_gradient(name, lists)
    assert value == 0.0
    assert gradient.tolist() == [[0.0] * 4] * 3


@EVERY
def test_nothing_real_is_a_gradient_of_zero_for_autograd(name):
    torch = pytest.importorskip("torch")
    lists = data(mask=[[0] * 4] * 3)
    made = batch(lists, lambda v: torch.tensor(v, dtype=torch.float64))
    made.new.requires_grad_()
    loss, logged = POINTS[name].loss(made)
    loss.backward()
    assert loss.item() == 0.0
    assert made.new.grad.tolist() == [[0.0] * 4] * 3
    assert all(value.isfinite() for value in logged.values())


@EVERY
def test_empty_rows_do_not_count_where_they_are_not_to(name):
    """`count_empty=False`: as if the rows were not there. Otherwise means shrink by 4/5."""
    without = rows(data(scope=Scope(length=8.0, count_empty=name not in UNCOUNTED)), [0, 1, 3, 4])
    left_out = data(scope=Scope(length=8.0, count_empty=False))
    value, gradient = value_and_gradient(name, without)
    other, wider = value_and_gradient(name, left_out)
    assert other == pytest.approx(value, **CLOSE)
    assert wider[[0, 1, 3, 4]] == pytest.approx(gradient, **CLOSE)
    point = POINTS[name]
    names = {point.aggregation, point.divergence.aggregation, point.entropy.aggregation}
    if names <= {"sequence-mean", "same"} and name not in UNCOUNTED:
        counted = value_and_gradient(name, data())[0]
        assert counted == pytest.approx(value * 4 / 5, **CLOSE)


@EVERY
def test_a_batch_without_rows(name):
    none = np.zeros((0, 4))
    made = Batch(
        none, np.zeros(0), none, none, none, none, none, Scope(length=8.0), kept=np.zeros(0)
    )
    assert float(POINTS[name].loss(made)[0]) == 0.0
    assert POINTS[name].gradient(made).shape == (0, 4)


def test_inputs_are_left_alone():
    made = batch(data(), floats)
    before = {key: np.array(getattr(made, key)) for key in (*PER_ROW, "advantages", "kept")}
    for point in POINTS.values():
        point.loss(made)
        point.gradient(made)
    for key, value in before.items():
        assert np.array_equal(value, getattr(made, key), equal_nan=True)
