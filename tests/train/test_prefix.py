"""Completions whose prompt was read once: states and gradients are those of the plain forward."""

import warnings
from dataclasses import replace

import pytest
from tests.support import tiny_policy

torch = pytest.importorskip("torch", reason="needs pip install 'rlproof[train]'")
pytest.importorskip("transformers")

from rlproof.train import prefix  # noqa: E402
from rlproof.train.rollout.batch import Row, stack  # noqa: E402


def rows(prompts=((2, 3, 4), (5, 6), (2, 3, 4)), group=4, longest=5, vocabulary=16):
    """Prompts of unequal length; one stands there twice, its groups not together."""
    source = torch.Generator().manual_seed(0)
    made = []
    for prompt in prompts:
        for i in range(group):
            tokens = torch.randint(2, vocabulary, (longest - i % 3,), generator=source).tolist()
            made.append(Row(list(prompt), tokens, [True] * len(tokens), [-1.0] * len(tokens)))
    return stack(made, 0)


SETTINGS = {
    "llama": tiny_policy.llama(),
    "grouped": tiny_policy.llama(num_key_value_heads=1),
    "qwen2": {**tiny_policy.llama(), "model_type": "qwen2"},
    "gpt2": tiny_policy.gpt2(),
}


def trunk(name="llama", **settings):
    return tiny_policy.model(SETTINGS[name] | settings).eval().double().base_model


def gradients(model, batch, states, weight):
    """Of a weighted sum of the states of real tokens, by every parameter."""
    model.zero_grad()
    found = states(model, batch)
    (found * weight * batch.attend[..., None]).sum().backward()
    return found.detach(), {n: p.grad.clone() for n, p in model.named_parameters()}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("prompts", [((2, 3, 4), (5, 6), (2, 3, 4)), ((7, 8), (9, 10))])
def test_states_and_gradients_are_those_of_the_plain_forward(name, prompts):
    """Within the rounding of norms and rotary tables, which transformers computes in float32."""
    model, batch = trunk(name), rows(prompts)
    size = (*batch.tokens.shape, 16)
    weight = torch.randn(size, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    shared, slopes = gradients(model, batch, prefix.shared_states, weight)
    plain, expected = gradients(model, batch, prefix.plain_states, weight)
    real = batch.attend > 0
    assert float((shared - plain)[real].abs().max()) < 1e-6 * float(plain.abs().max())
    largest = max(float(g.abs().max()) for g in expected.values())
    assert largest > 1
    for parameter, wanted in expected.items():
        assert float((slopes[parameter] - wanted).abs().max()) < 1e-6 * largest, parameter


def test_each_prompt_is_read_once_and_no_last_token():
    """3 groups of 4, 3 + 5 slots: 9 prompt tokens with padding, 12 · 4 of completions, of 96."""
    model, batch, seen = trunk(), rows(), []
    model.embed_tokens.register_forward_hook(lambda _m, given, _out: seen.append(given[0].numel()))
    prefix.shared_states(model, batch)
    seen.clear()  # the first call also compares
    assert prefix.shared_states(model, batch).shape[:2] == batch.tokens.shape
    assert seen == [9, 48]


def test_completions_of_one_token():
    model, batch = trunk(), rows(longest=3)
    one = replace(
        batch, tokens=batch.tokens[:, :1], mask=batch.mask[:, :1], attend=batch.attend[:, :1],
        logps=batch.logps[:, :1],
    )  # fmt: skip
    with torch.no_grad():
        gap = prefix.shared_states(model, one) - prefix.plain_states(model, one)
    assert float(gap.abs().max()) < 1e-6


def test_prompts_that_are_not_shared_go_the_plain_way():
    assert prefix.shared_states(trunk(), rows(group=1)) is None


@pytest.mark.parametrize(
    "settings",
    [
        {"model_type": "mistral", "sliding_window": 4, "num_attention_heads": 2},
        {"model_type": "gemma2", "sliding_window": 4, "head_dim": 8},
    ],
    ids=lambda s: s["model_type"],
)
def test_a_cache_that_forgets_is_not_used(settings):
    """A window of 4 tokens keeps 4 keys and no more."""
    assert prefix.shared_states(trunk(**settings), rows()) is None


def test_recomputed_activations_are_not_used_with_a_cache():
    assert prefix.shared_states(trunk().train(), rows()) is None


def test_a_model_that_does_not_agree_is_left_alone():
    """A model whose states are multiplied by the number of tokens that it is given at once."""
    model, batch = trunk(), rows()
    model.register_forward_hook(
        lambda _m, _given, out: setattr(
            out, "last_hidden_state", out.last_hidden_state * out.last_hidden_state.shape[1]
        )
    )
    with pytest.warns(UserWarning, match="gives other states"):
        assert prefix.shared_states(model, batch) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert prefix.shared_states(model, batch) is None  # said once
