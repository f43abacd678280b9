"""What autograd does with the loss: who gets gradients, how often, under which contexts."""

import gc
import weakref
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from tests.train.fused.cases import B, H, T, V, case, gap, outcome  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from rlproof.space.entropy import Entropy  # noqa: E402
from rlproof.space.objective import Divergence, Objective  # noqa: E402
from rlproof.space.published import OBJECTIVES  # noqa: E402
from rlproof.train.fused import FusedError, fused_loss, plain_loss  # noqa: E402
from rlproof.train.fused.matrix import Matrix  # noqa: E402

KINDS = {
    "one pass": Objective(divergence=Divergence("loss"), entropy=Entropy(0.03)),
    "two passes": OBJECTIVES["gspo"].objective,
}
EVERY = pytest.mark.parametrize("kind", KINDS)
NAMES = ("hidden", "weight", "bias")


def loss_of(made, objective, **options):
    return fused_loss(
        made.hidden, made.weight, made.tokens, made.batch, objective, bias=made.bias, **options
    ).loss


@EVERY
@pytest.mark.parametrize("wanted", [(0, 1, 2), (0,), (1,), (2,), (0, 1), (1, 2), (0, 2)])
def test_only_what_requires_a_gradient(kind, wanted):
    made = case()
    expected = outcome(made, KINDS[kind])
    leaves = [getattr(made, name).requires_grad_(i in wanted) for i, name in enumerate(NAMES)]
    loss_of(made, KINDS[kind]).backward()
    for i, (name, leaf) in enumerate(zip(NAMES, leaves, strict=True)):
        if i in wanted:
            assert gap({name: leaf.grad}, {name: expected[name]}) < 1e-14
        else:
            assert leaf.grad is None


@EVERY
def test_a_frozen_matrix_gets_no_buffer(kind, monkeypatch):
    made = case()
    made.hidden.requires_grad_()
    rooms = []
    wants = Matrix.wants
    monkeypatch.setattr(
        Matrix, "wants", lambda self, **asked: (wants(self, **asked), rooms.append(self))
    )
    loss_of(made, KINDS[kind]).backward()
    assert [(one.weight_grad, one.bias_grad) for one in rooms] == [(None, None)]


@EVERY
def test_no_gradient_at_all(kind):
    made = case()
    assert not loss_of(made, KINDS[kind]).requires_grad
    made.weight.requires_grad_()
    with torch.no_grad():
        loss = loss_of(made, KINDS[kind])
    assert not loss.requires_grad
    assert loss == loss_of(made, KINDS[kind]).detach()


@EVERY
def test_without_a_bias(kind):
    made = case()
    hidden, weight = made.hidden.requires_grad_(), made.weight.requires_grad_()
    fused_loss(hidden, weight, made.tokens, made.batch, KINDS[kind], chunk_rows=4).loss.backward()
    found = {"hidden": hidden.grad, "weight": weight.grad}
    hidden.grad = weight.grad = None
    plain_loss(
        lambda rows: rows @ weight.T, hidden, made.tokens, made.batch, KINDS[kind]
    ).loss.backward()
    assert gap(found, {"hidden": hidden.grad, "weight": weight.grad}) < 1e-12


@EVERY
def test_tied_weights(kind):
    """The output matrix is also the embedding: both ways to it add up."""
    made = case()
    ids, grads = torch.randint(V, (B, T)), []
    for form in (fused_loss, plain_loss):
        table = made.weight.clone().requires_grad_()
        hidden = torch.tanh(table[ids])
        given = table if form is fused_loss else lambda rows, table=table: rows @ table.T
        first, second = (hidden, given) if form is fused_loss else (given, hidden)
        form(first, second, made.tokens, made.batch, KINDS[kind]).loss.backward()
        grads.append({"table": table.grad})
    assert gap(*grads) < 1e-12


@EVERY
def test_scaled_and_summed(kind):
    """What gradient accumulation and loss scaling do: 3·L₁ + L₂ at one backward."""
    made = case()
    other = replace(case(seed=1), weight=made.weight, bias=made.bias)
    first, second = outcome(made, KINDS[kind]), outcome(other, KINDS[kind])
    expected = {name: 3 * first[name] + second[name] for name in ("weight", "bias")}
    weight, bias = made.weight.requires_grad_(), made.bias.requires_grad_()
    (3 * loss_of(made, KINDS[kind]) + loss_of(other, KINDS[kind])).backward()
    assert gap({"weight": weight.grad, "bias": bias.grad}, expected) < 1e-14


@EVERY
def test_several_backwards_accumulate(kind):
    made = case()
    expected = outcome(made, KINDS[kind])
    made.weight.requires_grad_()
    for _ in range(3):
        loss_of(made, KINDS[kind]).backward()
    assert gap({"weight": made.weight.grad / 3}, {"weight": expected["weight"]}) < 1e-14


def test_the_gradient_is_handed_over_not_copied():
    """Once backward is through, nothing but `grad` holds the matrix of gradients."""
    made = case()
    weight = made.weight.requires_grad_()
    result = fused_loss(made.hidden, weight, made.tokens, made.batch, KINDS["one pass"])
    node = result.loss.grad_fn
    held = weakref.ref(node.made[1])
    place = node.made[1].data_ptr()
    result.loss.backward()
    assert weight.grad.data_ptr() == place
    del result, node
    weight.grad = None
    gc.collect()
    assert held() is None


def test_a_second_backward_is_refused():
    made = case()
    made.weight.requires_grad_()
    loss = loss_of(made, KINDS["one pass"])
    loss.backward(retain_graph=True)
    with pytest.raises(FusedError, match="backward was called twice"):
        loss.backward()


def test_second_derivatives_are_refused():
    made = case()
    made.weight.requires_grad_()
    loss = loss_of(made, KINDS["one pass"])
    with pytest.raises(FusedError, match=r"no second derivatives.*plain_loss"):
        torch.autograd.grad(loss, made.weight, create_graph=True)


@EVERY
@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("inside", [True, False])
def test_checkpointing(kind, reentrant, inside):
    """Layers below are computed again in backward; the loss too, if it is inside."""
    made, grads = case(), []
    start = torch.randn(B, T, H, dtype=torch.float64, requires_grad=True)
    layer = torch.nn.Linear(H, H).double()
    made.weight.requires_grad_()

    def loss(hidden):
        return loss_of(replace(made, hidden=hidden), KINDS[kind])

    for way in ("stored", "again"):
        layer.zero_grad()
        made.weight.grad = None
        if way == "stored":
            loss(layer(start)).backward()
        elif inside:
            checkpoint(lambda x: loss(layer(x)), start, use_reentrant=reentrant).backward()
        else:
            loss(checkpoint(layer, start, use_reentrant=reentrant)).backward()
        grads.append({"layer": layer.weight.grad.clone(), "weight": made.weight.grad.clone()})
    assert gap(*grads) < 1e-14


@EVERY
def test_autocast_on_a_cpu_changes_nothing(kind):
    """Half precision is multiplied in float32 there, so nothing is cast down."""
    made = case().to(torch.float32)
    expected = outcome(made, KINDS[kind])
    with torch.autocast("cpu", torch.bfloat16):
        found = outcome(made, KINDS[kind])
    for name, value in expected.items():
        assert torch.equal(found[name], value), name


@EVERY
def test_mixed_types(kind):
    """A bfloat16 model under a float32 output matrix: each gradient in the type of its own."""
    made = case().to(torch.float32)
    low = replace(made, hidden=made.hidden.bfloat16())
    found = outcome(low, KINDS[kind])
    exact = outcome(replace(made, hidden=low.hidden.float()), KINDS[kind])
    assert found["hidden"].dtype == torch.bfloat16
    assert found["weight"].dtype == torch.float32
    assert gap({"weight": found["weight"]}, {"weight": exact["weight"]}) < 1e-6


@EVERY
def test_products_in_half_precision(kind, monkeypatch):
    """As on a device that multiplies bfloat16: logits are rounded, sums are float32."""
    from rlproof.train.fused import head

    made = case(spread=0.05, scale=0.3).to(torch.bfloat16)
    exact = outcome(made.to(torch.float64), KINDS[kind], "plain")
    monkeypatch.setattr(head, "_multiplied", lambda *_: torch.bfloat16)
    found = outcome(made, KINDS[kind])
    assert found["loss"].dtype == torch.float32
    for name in ("loss", *NAMES, "logps"):
        assert gap({name: found[name].double()}, {name: exact[name]}) < 0.02


def test_training_goes_down():
    """A little net on one batch: the loss falls at every step of gradient descent."""
    made = case(old=None, ref=None)
    objective = OBJECTIVES["gpg"].objective
    made.weight.requires_grad_()
    losses = []
    for _ in range(5):
        loss = loss_of(made, objective)
        made.weight.grad = None
        loss.backward()
        losses.append(loss.item())
        with torch.no_grad():
            made.weight -= 0.05 * made.weight.grad
    assert losses == sorted(losses, reverse=True)
    assert len(set(losses)) == 5
