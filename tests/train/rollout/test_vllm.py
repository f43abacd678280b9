"""Sampling from vLLM in this process, where it is installed: a build for the CPU is enough."""

import os
from importlib.util import find_spec

import pytest

from rlproof.errors import ConfigError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # vLLM's own, of other packages
    pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed"),
]
PROMPTS = [[5, 6, 7]] * 4 + [[9] * 6, [1]]
EOS = list(range(30))


@pytest.fixture(scope="module")
def model():
    from tests.support.tiny_lm import tiny_lm

    # vLLM's kernels for the CPU take heads of 32 and more
    wide = {"hidden_size": 128, "head_dim": 32, "intermediate_size": 128}
    return tiny_lm(std=0.05, bos_token_id=0, eos_token_id=2, **wide)


@pytest.fixture(scope="module")
def llm(model, tmp_path_factory):
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    from vllm import LLM

    folder = tmp_path_factory.mktemp("weights")
    model.save_pretrained(folder)
    return LLM(
        model=str(folder), skip_tokenizer_init=True, dtype="float32", enforce_eager=True,
        max_model_len=64, logprobs_mode="processed_logprobs", seed=0,
    )  # fmt: skip


def engine(llm, **settings):
    from rlproof.train.rollout.vllm import VllmEngine
    from rlproof.train.sampling import Sampling

    folder = settings.pop("folder", None)
    how = Sampling(**{"max_tokens": 8, **settings})
    return VllmEngine(llm, how, eos=EOS, pad=0, folder=folder)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_log_probs_are_those_of_the_trainer_to_rounding(llm, model, temperature):
    """Other kernels for the same weights in float32: at most 1e-4 nats."""
    from tests.support.tiny_lm import trained_logps

    from rlproof.train.rollout.gap import measure

    batch = engine(llm, temperature=temperature).generate(PROMPTS)
    gap = measure(batch.logps, trained_logps(model, batch, temperature), batch.mask)
    assert gap.largest <= 1e-4
    assert batch.finished.tolist() == [row[-1] in EOS for row in batch.completions()]
    assert len({tuple(row) for row in batch.completions()[:4]}) > 1  # seeds of one group differ


def test_weights_are_taken(llm, model, tmp_path):
    import torch
    from tests.support.tiny_lm import trained_logps

    from rlproof.train.rollout.gap import measure

    changed = engine(llm, folder=tmp_path)
    state = {name: weight.clone() for name, weight in model.state_dict().items()}
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.02 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1))
    try:
        stale = changed.generate(PROMPTS)
        assert measure(stale.logps, trained_logps(model, stale), stale.mask).mean > 0.01
        changed.update(model, 1)
        fresh = changed.generate(PROMPTS)
        assert measure(fresh.logps, trained_logps(model, fresh), fresh.mask).largest <= 1e-4
        assert (stale.version, fresh.version) == (0, 1)
    finally:
        model.load_state_dict(state)
        changed.update(model, 2)


def test_a_resumed_run_samples_the_same(llm):
    first = engine(llm)
    first.generate(PROMPTS)
    again = engine(llm)
    again.restore(first.state())
    assert first.generate(PROMPTS).completions() == again.generate(PROMPTS).completions()


def test_weights_without_a_folder_are_refused(llm, model):
    with pytest.raises(ConfigError, match="expected folder="):
        engine(llm).update(model, 1)
