"""Chunks, padding, masks, extremes and layouts."""

from dataclasses import replace
from itertools import pairwise

import pytest

torch = pytest.importorskip("torch")

from tests.train.fused.cases import B, H, T, V, case, gap, outcome  # noqa: E402

from rlproof.space.entropy import Entropy  # noqa: E402
from rlproof.space.objective import Divergence, Objective, ObjectiveError  # noqa: E402
from rlproof.space.published import OBJECTIVES  # noqa: E402
from rlproof.train.fused import (  # noqa: E402
    FusedBatch,
    FusedError,
    fused_log_probs,
    fused_loss,
    plain_loss,
)
from rlproof.train.fused.chunk import alive_first  # noqa: E402

EXACT = 1e-12
PLAIN_GRPO = Objective()
KINDS = {
    "one pass": Objective(divergence=Divergence("loss"), entropy=Entropy(0.03)),
    "two passes": OBJECTIVES["gspo"].objective.but(entropy=Entropy(0.03)),
    "without bonus": OBJECTIVES["dapo"].objective,
}
EVERY = pytest.mark.parametrize("kind", KINDS)


@EVERY
@pytest.mark.parametrize("rows", [1, 2, 7, 1000, None])
def test_the_chunk_does_not_matter(kind, rows):
    """37 columns and 23 tokens: no size divides them."""
    made = case()
    expected = outcome(made, KINDS[kind], chunk_rows=4)
    assert gap(outcome(made, KINDS[kind], chunk_rows=rows), expected) < EXACT


@EVERY
def test_padding_gets_no_gradient(kind):
    made = case()  # NaN hidden states and the id −100 on padding
    found = outcome(made, KINDS[kind])["hidden"]
    assert not found[made.batch.mask == 0].any()
    assert found.isfinite().all()


@EVERY
def test_nothing_counts(kind):
    made = case(mask=torch.zeros(B, T))
    found = outcome(made, KINDS[kind])
    for value in found.values():
        assert not value.any()
    assert not torch.isnan(found["loss"])


@EVERY
@pytest.mark.parametrize(("rows", "slots"), [(0, 3), (1, 0), (1, 1)])
def test_small_batches(kind, rows, slots):
    hidden = torch.randn(rows, slots, H, requires_grad=True)
    weight = torch.randn(V, H, requires_grad=True)
    ones = torch.ones(rows, slots)
    batch = FusedBatch(ones, torch.ones(rows), old=-4 * ones, ref=-3 * ones)
    tokens = torch.zeros(rows, slots, dtype=torch.int64)
    found = fused_loss(hidden, weight, tokens, batch, KINDS[kind])
    found.loss.backward()
    assert found.loss.isfinite()
    assert found.rows == rows * slots
    assert weight.grad.shape == weight.shape
    assert weight.grad.isfinite().all()
    assert bool(weight.grad.any()) == bool(rows * slots)


def test_one_word():
    """V = 1: the token is certain, log π = 0 and nothing moves it."""
    hidden, weight = torch.randn(1, 2, H, requires_grad=True), torch.randn(1, H, requires_grad=True)
    zeros = torch.zeros(1, 2)
    found = fused_loss(
        hidden, weight, zeros.long(), FusedBatch(zeros + 1, torch.ones(1), old=zeros), PLAIN_GRPO
    )
    found.loss.backward()
    assert found.loss == -1
    assert not hidden.grad.any()
    assert not weight.grad.any()


@EVERY
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_huge_logits(kind, dtype):
    """Logits of 1e4 and −1e4: probabilities of 0 and 1, log-probs of −2e4."""
    made = case(old=None, ref=torch.full((B, T), -2e4)).to(dtype)
    size = made.hidden.abs().nan_to_num().max() * made.weight.abs().max() * H
    made = replace(made, weight=made.weight * (1e4 / size))
    objective = KINDS[kind].but(divergence=Divergence("loss", estimator="k1"))
    found, expected = outcome(made, objective), outcome(made, objective, "plain")
    assert found["logps"].min() < -1000
    assert gap(found, expected) < (1e-11 if dtype == torch.float64 else 2e-6)


def test_underflowing_probabilities():
    """Logits 0 and −z of two words, in float32: log π = −z − log(1 + e^−z), which rounds to −z.

    From z = 88 on e^−z is below the smallest normal float32, from 104 on it is 0. Of the entropy
    z·e^−z is left: the other word has p = 1, whose p·log p is 0.
    """
    z = torch.tensor([[60.0, 80.0, 87.0, 88.0, 95.0, 104.0, 200.0, 5000.0]])
    hidden, weight = z[..., None].clone(), torch.tensor([[0.0], [-1.0]])
    tokens, mask = torch.ones(1, 8, dtype=torch.int64), torch.ones(1, 8)
    logps, entropy = fused_log_probs(hidden, weight, tokens, mask, entropy=True)
    torch.testing.assert_close(logps, -z, rtol=3e-7, atol=0)
    torch.testing.assert_close(entropy, z * (-z).exp(), rtol=2e-6, atol=1e-37)
    halved, _ = fused_log_probs(hidden, weight, tokens, mask, temperature=2.0)
    torch.testing.assert_close(halved[0, 2:], -z[0, 2:] / 2, rtol=3e-7, atol=0)


@EVERY
def test_layouts(kind):
    made = case()
    expected = outcome(made, KINDS[kind])
    wide = torch.randn(B, T + 2, H + 3, dtype=torch.float64)
    wide[:, 1:-1, 2:-1] = made.hidden
    weight = made.weight.T.contiguous().T
    turned = made.tokens.T.contiguous().T
    mask = made.batch.mask.bool()
    batch = replace(made.batch, mask=mask, old=made.batch.old.T.contiguous().T)
    batch = replace(batch, advantages=batch.advantages[:, None].expand(B, T))
    other = replace(made, hidden=wide[:, 1:-1, 2:-1], weight=weight, tokens=turned, batch=batch)
    for one in (other.hidden, other.weight, other.tokens, other.batch.old):
        assert not one.is_contiguous()
    assert gap(outcome(other, KINDS[kind]), expected) < EXACT
    narrow_ids = replace(made, tokens=made.tokens.int())
    assert gap(outcome(narrow_ids, KINDS[kind]), expected) == 0


@EVERY
def test_the_same_bits_again(kind):
    made = case().to(torch.float32)
    first, second = outcome(made, KINDS[kind]), outcome(made, KINDS[kind])
    for name, value in first.items():
        assert torch.equal(value, second[name]), name


def test_rows_without_a_gradient_are_skipped():
    """GRPO without divergence: tokens beyond the clip on the side of A, and the row of A = 0."""
    made = case()
    result = fused_loss(
        made.hidden, made.weight.requires_grad_(), made.tokens, made.batch, PLAIN_GRPO,
        bias=made.bias, chunk_rows=5,
    )  # fmt: skip
    slopes = PLAIN_GRPO.gradient(made.batch.space(result.logps))
    assert result.rows == int(made.batch.mask.sum())
    assert result.backward_rows == int((slopes != 0).sum())
    assert 0 < result.backward_rows < result.rows - int(made.batch.mask[4].sum())
    with_bonus = PLAIN_GRPO.but(entropy=Entropy(0.1))
    result = fused_loss(made.hidden, made.weight, made.tokens, made.batch, with_bonus)
    assert result.backward_rows == result.rows


def test_alive_rows_go_to_the_front():
    """Rows 1, 2, 5 and 7 of nine: 7 and 5 fill what 0 and 3 leave; others stay."""
    alive = torch.tensor([0, 1, 1, 0, 0, 1, 0, 1, 0]) > 0
    rows = torch.arange(9.0)[:, None].repeat(1, 3)
    order = alive_first(rows, alive)
    assert order.tolist() == [5, 1, 2, 7]
    assert rows[:4, 0].tolist() == [5, 1, 2, 7]
    torch.manual_seed(0)
    for share in (0.0, 0.1, 0.5, 0.9, 1.0):
        alive = torch.rand(300) < share
        rows = torch.arange(300.0)[:, None].repeat(1, 2)
        order = alive_first(rows, alive)
        assert sorted(order.tolist()) == alive.nonzero()[:, 0].tolist()
        assert rows[: len(order), 1].tolist() == order.tolist()


def test_log_probs_alone():
    made = case(temperature=0.7)
    options = {"temperature": 0.7, "bias": made.bias, "entropy": True, "chunk_rows": 3}
    logps, entropy = fused_log_probs(
        made.hidden, made.weight, made.tokens, made.batch.mask, **options
    )
    expected = outcome(made, PLAIN_GRPO.but(temperature=0.7), "plain", entropy=True)
    assert (
        gap({"logps": logps, "entropy": entropy}, {k: expected[k] for k in ("logps", "entropy")})
        < EXACT
    )
    assert not logps.requires_grad


def test_micro_batches_add_up():
    """Under the denominators of the whole batch, gradients of its rows add up to its own."""
    from rlproof.space.aggregation import Scope

    for kind, objective in KINDS.items():
        whole = case()
        tokens = whole.batch.mask.sum().item()
        scope = Scope(tokens=tokens, sequences=B, length=8.0)
        whole.batch = replace(whole.batch, scope=scope)
        expected, total = outcome(whole, objective), None
        for low, high in pairwise((0, 1, 3, 5)):
            rows = slice(low, high)
            part = replace(
                whole,
                hidden=whole.hidden[rows],
                tokens=whole.tokens[rows],
                batch=replace(
                    whole.batch, mask=whole.batch.mask[rows], old=whole.batch.old[rows],
                    ref=whole.batch.ref[rows], sampler=None, groups=None,
                    advantages=whole.batch.advantages[rows],
                ),
            )  # fmt: skip
            found = outcome(part, objective)
            found = {name: found[name] for name in ("loss", "weight", "bias")}
            total = found if total is None else {k: total[k] + v for k, v in found.items()}
        assert gap(total, {name: expected[name] for name in total}) < EXACT, kind


WRONG = {
    "hidden has shape": {"hidden": torch.zeros(T, H)},
    "weight has shape": {"weight": torch.zeros(V, H + 1)},
    "bias has shape": {"bias": torch.zeros(V + 1)},
    "expected floating-point": {"weight": torch.zeros(V, H, dtype=torch.int8)},
    "tokens has shape": {"tokens": torch.zeros(B, T + 1, dtype=torch.int64)},
    "tokens are torch.float32": {"tokens": torch.zeros(B, T)},
    "token id 99 counts": {"tokens": torch.full((B, T), 99)},
    "token id -100 counts": {"tokens": torch.full((B, T), -100)},
    "mask has shape": {"mask": torch.ones(B, 1)},
    "old has shape": {"old": torch.ones(B, T - 1)},
    "advantages have shape": {"advantages": torch.ones(B, 1)},
    "chunk_rows = 0": {"chunk_rows": 0},
}


@pytest.mark.parametrize("message", WRONG)
def test_inputs_that_do_not_fit(message):
    given = {
        "hidden": torch.zeros(B, T, H), "weight": torch.zeros(V, H), "bias": None,
        "tokens": torch.zeros(B, T, dtype=torch.int64), "mask": torch.ones(B, T),
        "advantages": torch.ones(B), "old": None, "chunk_rows": None,
    } | WRONG[message]  # fmt: skip
    batch = FusedBatch(given["mask"], given["advantages"], given["old"])
    with pytest.raises(FusedError, match=message):
        fused_loss(
            given["hidden"], given["weight"], given["tokens"], batch, PLAIN_GRPO,
            bias=given["bias"], chunk_rows=given["chunk_rows"],
        )  # fmt: skip
    if message.startswith(("tok", "mask", "old", "adv")):
        with pytest.raises(FusedError, match=message):
            plain_loss(
                lambda rows: rows @ given["weight"].T, given["hidden"], given["tokens"], batch,
                PLAIN_GRPO,
            )  # fmt: skip


def test_a_missing_policy_is_named():
    made = case(ref=None)
    with pytest.raises(ObjectiveError, match=r"needs batch\.ref"):
        outcome(made, Objective(divergence=Divergence("loss")))
