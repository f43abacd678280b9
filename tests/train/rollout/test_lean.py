"""When the short forward stands in, and that it is never trusted blindly.

That it computes the same is tested in test_generate.py, for every family.
"""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.support.tiny_lm import tiny_lm, trained_logps  # noqa: E402

from rlproof.train.rollout import generate as module  # noqa: E402
from rlproof.train.rollout import lean  # noqa: E402
from rlproof.train.rollout.generate import generate  # noqa: E402
from rlproof.train.sampling import Sampling  # noqa: E402


@pytest.fixture(autouse=True)
def _only_sampling(monkeypatch):
    monkeypatch.setattr(module, "check_exact", lambda *_: None)  # it runs the model too


def calls(model, tokens=6):
    """How often the model's own forward is run for so many tokens, and the batch."""
    seen = []
    body = model.base_model
    own = type(body).forward
    type(body).forward = lambda *args, **kwargs: (seen.append(1), own(*args, **kwargs))[1]
    try:
        batch = generate(
            model, [[3, 4], [5]], Sampling(max_tokens=tokens),
            eos=[], pad=0, generator=torch.Generator().manual_seed(0),
        )  # fmt: skip
    finally:
        type(body).forward = own
    return len(seen), batch


@pytest.mark.parametrize("name", ["llama", "qwen2", "qwen3"])
def test_it_stands_in_after_one_comparison(name):
    model = tiny_lm(name)
    assert calls(model)[0] == 2  # the prompts, and the first token for comparison
    assert calls(model)[0] == 1


@pytest.mark.parametrize("name", ["gpt2", "gemma3", "mistral-sliding"])
def test_other_architectures_use_their_own(name):
    assert calls(tiny_lm(name))[0] == 6


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.model.layers[0].register_forward_hook(lambda *_: None),
        lambda m: m.model.norm.register_forward_pre_hook(lambda *_: None),
        lambda m: setattr(m.model.layers[0].mlp, "forward", m.model.layers[0].mlp.forward),
        lambda m: m.bfloat16(),
    ],
)
def test_changed_modules_use_their_own(change):
    model = tiny_lm()
    change(model)
    assert calls(model)[0] == 6


def test_a_difference_is_told_and_the_models_own_is_used(monkeypatch):
    monkeypatch.setattr(lean, "_turn", lambda heads, _cos, _sin: heads)  # no positions
    model = tiny_lm()
    with pytest.warns(UserWarning, match="nats off transformers' own"):
        count, batch = calls(model)
    assert count == 7  # the first token twice: for comparison, then for the cache
    assert ((trained_logps(model, batch) - batch.logps).abs() * batch.mask).max() <= 1e-5
    assert calls(model)[0] == 6  # and later, without another warning


@pytest.mark.parametrize("name", ["llama-tied", "qwen2", "qwen3"])
def test_joined_matrices_are_those_of_the_weights_now(name):
    """Every weight is changed in place, as an optimizer does it, after a batch was sampled."""
    model = tiny_lm(name, attention_bias=True) if name == "llama-tied" else tiny_lm(name)
    calls(model)
    with torch.no_grad():
        for n, parameter in enumerate(model.parameters()):
            parameter.mul_(1.1 + 0.01 * (n % 7))
    count, batch = calls(model)
    assert count == 1
    assert ((trained_logps(model, batch) - batch.logps).abs() * batch.mask).max() <= 1e-5


def test_layers_of_large_models_are_not_joined(monkeypatch):
    monkeypatch.setattr(lean, "JOINED", 0)
    monkeypatch.setattr(torch, "cat", _unless_weights(torch.cat))
    model = tiny_lm()
    _, batch = calls(model)
    assert ((trained_logps(model, batch) - batch.logps).abs() * batch.mask).max() <= 1e-5


def _unless_weights(own):
    def cat(parts, *more, **named):
        assert not any(isinstance(part, torch.nn.Parameter) for part in parts)
        return own(parts, *more, **named)

    return cat


def test_hooks_and_adapters_of_linear_layers_are_called():
    """A hook that doubles the values: the log-probs are those of the model with it."""
    model, seen = tiny_lm(), []
    hooked = model.model.layers[1].self_attn.v_proj
    hooked.register_forward_hook(lambda _m, _x, out: (seen.append(1), 2 * out)[1])
    count, batch = calls(model)
    assert count == 2
    assert len(seen) == 7  # the prompts, one comparison, and five tokens by the short forward
    assert ((trained_logps(model, batch) - batch.logps).abs() * batch.mask).max() <= 1e-5
