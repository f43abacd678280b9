"""Which output layers are fused, and that the others give the same loss with a warning."""

import warnings
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from tests.train.fused.cases import H, V, case, gap  # noqa: E402

from rlproof.space.entropy import Entropy  # noqa: E402
from rlproof.space.objective import Divergence, Objective  # noqa: E402
from rlproof.space.published import OBJECTIVES  # noqa: E402
from rlproof.train.fused import (  # noqa: E402
    FusedFallbackWarning,
    after_head,
    head_loss,
    logits_loss,
    logits_of_head,
    plain_loss,
    why_not_fused,
)

OBJECTIVE = Objective(divergence=Divergence("loss"), entropy=Entropy(0.03), temperature=0.7)


class Config:
    def __init__(self, **values):
        self.__dict__.update(values)


class TwoLayers(torch.nn.Module):
    """A head that is not one matrix."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(H, H), torch.nn.Linear(H, V)
        self.double()

    def forward(self, hidden):
        return self.second(torch.tanh(self.first(hidden)))


class Quantised(torch.nn.Linear):
    """As libraries do it: a subclass whose product is another one."""

    def forward(self, hidden):
        return super().forward(hidden).round(decimals=2)


def linear(kind=torch.nn.Linear):
    torch.manual_seed(0)
    return kind(H, V).double()


def losses(head, after=None, objective=OBJECTIVE):
    """By `head_loss`, and through the logits of everything: results with the gradients."""
    made, found = case(), []
    made.hidden = made.hidden.nan_to_num()  # the second way projects padding too
    for way in ("head", "logits"):
        head.zero_grad()
        hidden = made.hidden.clone().requires_grad_()
        if way == "head":
            result = head_loss(head, hidden, made.tokens, made.batch, objective, after=after)
        else:
            logits = head(hidden) if after is None else after(head(hidden))
            result = logits_loss(logits, made.tokens, made.batch, objective)
        result.loss.backward()
        grads = {name: one.grad.clone() for name, one in head.named_parameters()}
        found.append(
            {"loss": result.loss.detach(), "hidden": hidden.grad, "logps": result.logps} | grads
        )
    return found


def test_a_linear_layer_is_fused_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gap(*losses(linear())) < 1e-12


def hooked():
    layer = linear()
    layer.register_forward_hook(lambda module, given, found: found * 2)
    return layer


@pytest.mark.parametrize(
    ("make", "after", "reason"),
    [
        (TwoLayers, None, "a TwoLayers, not a torch.nn.Linear"),
        (hooked, None, "forward hooks"),
        (linear, after_head(Config(final_logit_softcapping=3.0)), "soft cap or scale"),
        (linear, after_head(Config(logit_scale=0.25)), "soft cap or scale"),
    ],
)
def test_others_fall_back(make, after, reason):
    with pytest.warns(FusedFallbackWarning, match=reason):
        first, second = losses(make(), after)
    assert gap(first, second) < 1e-12


def test_reasons():
    assert why_not_fused(linear()) is None
    assert "Quantised" in why_not_fused(linear(Quantised))
    whole = linear()
    whole.weight = torch.nn.Parameter(whole.weight.to(torch.int8), requires_grad=False)
    assert "int8" in why_not_fused(whole)
    small = linear()
    small.weight = torch.nn.Parameter(small.weight.to(torch.float8_e4m3fn), requires_grad=False)
    assert "float8" in why_not_fused(small)

    class Sharded(torch.Tensor):
        pass

    other = linear()
    del other.weight
    other.weight = torch.ones(V, H).as_subclass(Sharded)
    assert "Sharded" in why_not_fused(other)


def test_what_configurations_say():
    """3·tanh(z/3); times 0.5; divided by 4."""
    z = torch.tensor([-9.0, 0.5, 4.0])
    assert after_head(Config()) is None
    assert after_head(Config(final_logit_softcapping=None, logits_scaling=1.0)) is None
    cap = after_head(Config(final_logit_softcapping=3.0))
    torch.testing.assert_close(cap(z), 3 * torch.tanh(z / 3))
    torch.testing.assert_close(after_head(Config(logit_scale=0.5))(z), z / 2)
    torch.testing.assert_close(after_head(Config(logits_scaling=4.0))(z), z / 4)


def test_the_fallback_does_every_published_objective():
    """As `logits_loss`, on another path to the logits: of rows that count only."""
    for one in OBJECTIVES.values():
        made, head = case(), TwoLayers()
        first = plain_loss(head, made.hidden, made.tokens, made.batch, one.objective)
        logits = head(made.hidden.nan_to_num())
        second = logits_loss(logits, made.tokens, made.batch, one.objective)
        torch.testing.assert_close(first.loss, second.loss, rtol=1e-12, atol=1e-15)
        assert first.rows == int(made.batch.mask.sum())


MODELS = {
    "Llama": {"tie_word_embeddings": False},
    "Qwen2": {"tie_word_embeddings": True},
    "Gemma2": {"final_logit_softcapping": 5.0, "head_dim": 8},
    "Cohere": {"logit_scale": 0.3},
    "Granite": {"logits_scaling": 4.0},
}
SIZES = {
    "vocab_size": 50, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1,
    "num_attention_heads": 2, "num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("name", MODELS)
def test_models_of_transformers(name):
    """A model's own logits are what its configuration says of its output layer; where they are
    not, that is seen."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**SIZES, **MODELS[name])
    model = getattr(transformers, f"{name}ForCausalLM")(config).train()
    head, ids = model.get_output_embeddings(), torch.arange(12).reshape(2, 6)
    with torch.no_grad():
        head.weight.mul_(20)  # logits that a cap bends
    after = after_head(config)
    assert logits_of_head(model, head, ids, after)
    assert model.training
    assert (after is None) == (name in ("Llama", "Qwen2"))
    if after is not None:
        assert not logits_of_head(model, head, ids, None)
        assert why_not_fused(head, after)
    else:
        assert why_not_fused(head) is None
    assert not logits_of_head(model, torch.nn.Linear(16, 50), ids, after)


def test_padding_of_a_model_is_not_projected():
    rows = []
    made, head = case(), linear()
    head.register_forward_hook(lambda module, given, found: rows.append(given[0].shape))
    with pytest.warns(FusedFallbackWarning):
        head_loss(head, made.hidden, made.tokens, replace(made.batch), OBJECTIVE)
    assert rows == [(1, int(made.batch.mask.sum()), H)]
