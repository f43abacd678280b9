"""Products by oneDNN: those of float64 within rounding, and only where they may stand in."""

import pytest

torch = pytest.importorskip("torch", reason="needs pip install 'rlproof[train]'")

from torch.nn import functional  # noqa: E402

from rlproof.train import products  # noqa: E402

pytestmark = pytest.mark.skipif(
    not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="torch has no oneDNN here"
)


@pytest.fixture(autouse=True)
def _anywhere(monkeypatch):
    """The operator is tested on every processor, and small sizes are served."""
    monkeypatch.setattr(products, "faster", lambda: True)
    monkeypatch.setattr(products, "LEAST", 1)


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def close(found, exact):
    """Sums of 100 products in float32: 1e-5 of the largest is 100 roundings."""
    return float((found.double() - exact).abs().max()) < 1e-5 * float(exact.abs().max())


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("rows", "outputs"), [(64, 24), (200, 24), (71, 9_001), (4_100, 5)])
def test_a_linear_layer_and_its_gradients(rows, outputs, bias):
    """Rows and outputs with and without a rest; an expanded gradient; three dimensions."""
    x, weight = numbers(2, rows, 100), numbers(outputs, 100, seed=1)
    given = [x, weight, numbers(outputs, seed=2) if bias else None]
    slope = numbers(2, rows, 1, seed=3).expand(2, rows, outputs)

    def gradients(inputs):
        leaves = [None if one is None else one.clone().requires_grad_() for one in inputs]
        with products.FastLinears():
            out = functional.linear(*leaves)
        known = [one for one in leaves if one is not None]
        return out, torch.autograd.grad(out, known, slope.to(out.dtype))

    out, found = gradients(given)
    exact, wanted = gradients([None if one is None else one.double() for one in given])
    assert type(out.grad_fn).__name__.startswith("_Linear")
    assert not type(exact.grad_fn).__name__.startswith("_Linear")
    assert close(out.detach(), exact.detach())
    assert all(close(one, other) for one, other in zip(found, wanted, strict=True))


def test_sums_over_chunks():
    total = torch.full((9_001, 30), torch.nan)
    d, x = numbers(150, 9_001), numbers(150, 30, seed=1)
    products.add_outer(total, d, x, True)
    products.add_outer(total, d[:70], x[:70], False)
    exact = d.double().t() @ x.double() + d[:70].double().t() @ x[:70].double()
    assert close(total, exact)


@pytest.mark.parametrize("count", [1, 63, 64, 100, 992, 1_000, 70_000])
def test_rows_are_taken_once_and_few_sizes_are_met(count):
    """Sizes of oneDNN have four leading bits; the rest is below an eighth, or below 64."""
    pieces = list(products._blocks(count))
    assert [i for part, _ in pieces for i in range(part.start, part.stop)] == list(range(count))
    quick = sum(part.stop - part.start for part, quick in pieces if quick)
    assert bin(quick).count("1") <= 4
    assert count - quick < max(64, count / 8) if quick else count < 64


class Own(torch.Tensor):
    """Any tensor that means more than its numbers."""


REFUSED = {
    "float64": lambda x, w: (x.double(), w.double()),
    "bfloat16": lambda x, w: (x.bfloat16(), w.bfloat16()),
    "a subclass": lambda x, w: (x, w.as_subclass(Own)),
    "few rows": lambda x, w: (x[:63], w),
    "sparse": lambda x, w: (x, w.to_sparse_csr()),
}


@pytest.mark.filterwarnings("ignore:Sparse CSR")
@pytest.mark.parametrize("case", REFUSED)
def test_other_tensors_are_left_to_torch(case):
    x, weight = numbers(100, 20), numbers(30, 20)
    assert products.served(x, weight)
    assert not products.served(*REFUSED[case](x, weight))


def test_autocast_vmap_and_the_switch_of_torch_turn_it_off(monkeypatch):
    x, weight = numbers(100, 20), numbers(30, 20)
    with torch.autocast("cpu", dtype=torch.bfloat16), products.FastLinears():
        assert functional.linear(x, weight).dtype is torch.bfloat16
    with products.FastLinears():
        many = torch.func.vmap(functional.linear, (0, None))(x[None], weight)
    assert close(many[0], x.double() @ weight.double().t())
    assert products.served(x, weight)
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    assert not products.served(x, weight)


def test_small_products_are_left_to_torch(monkeypatch):
    monkeypatch.setattr(products, "LEAST", 100 * 20 * 30 + 1)
    assert not products.served(numbers(100, 20), numbers(30, 20))


@pytest.mark.parametrize("wrong", [lambda x, w, *_: x @ w.t() + 1e-3, None])
def test_an_operator_that_is_wrong_or_gone_is_not_used(monkeypatch, wrong):
    def gone(*_args):
        raise AttributeError("no such operator")

    monkeypatch.undo()
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    monkeypatch.setattr(products, "_processor", lambda: "vendor_id : AuthenticAMD")
    products.faster.cache_clear()
    assert products.faster()
    products.faster.cache_clear()
    monkeypatch.setattr(products, "call", wrong or gone)
    assert not products.faster()
    products.faster.cache_clear()


def test_other_processors_are_left_alone(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(products, "_processor", lambda: "vendor_id : GenuineIntel")
    products.faster.cache_clear()
    assert not products.faster()
    products.faster.cache_clear()
