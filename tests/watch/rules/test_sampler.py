"""Two engines: noise is silent, a shift, zeros, truncation and a temperature are told apart.

Shapes: B rows, T slots, V words.
"""

import numpy as np
import pytest

from rlproof.watch.command import inspect_path
from rlproof.watch.record import Recorder

OF_SAMPLER = {"STP007", "STP008", "STP009", "STP010"}


def log_softmax(logits):
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def drawn(rng, scores):
    return (scores + rng.gumbel(size=scores.shape)).argmax(-1)[..., None]


def of(scores, tokens):
    return np.take_along_axis(scores, tokens, -1)[..., 0]


def found(path, trainer, sampler, **more):
    recorder = Recorder(path, every=1)
    recorder.record(step=0, update=0, new_logps=trainer, sampler_logps=sampler, **more)
    recorder.close()
    return {f.rule.code for f in inspect_path(str(path), ()).findings}


def logits_of(seed, spread, words=32):
    rng = np.random.default_rng(seed)
    return rng, spread * rng.normal(0, 1, (16, 64, words))


@pytest.mark.parametrize("spread", [1.0, 3.0, 8.0])
@pytest.mark.parametrize("noise", [0.0, 0.01, 0.05])
@pytest.mark.parametrize("seed", range(3))
def test_noise_is_silent(tmp_path, seed, spread, noise):
    """bfloat16 gives about 0.01 nats; sure tokens (spread 8) have little to lose."""
    rng, logits = logits_of(seed, spread)
    scores = log_softmax(logits)
    trainer = of(scores, drawn(rng, scores))
    sampler = np.minimum(trainer + rng.normal(0, noise, trainer.shape), 0)
    assert found(tmp_path / "a.jsonl", trainer, sampler) == set()


@pytest.mark.parametrize("seed", range(3))
def test_weights_that_are_a_few_updates_old_are_silent(tmp_path, seed):
    rng, logits = logits_of(seed, 2.0)
    older, newer = log_softmax(logits), log_softmax(logits + rng.normal(0, 0.1, logits.shape))
    tokens = drawn(rng, older)
    assert found(tmp_path / "a.jsonl", of(newer, tokens), of(older, tokens)) == set()


@pytest.mark.parametrize("heat", [0.6, 0.7, 1.4])
@pytest.mark.parametrize("seed", range(3))
def test_another_temperature(tmp_path, heat, seed):
    rng, logits = logits_of(seed, 2.0, words=8)
    hot, scores = log_softmax(logits / heat), log_softmax(logits)
    tokens = drawn(rng, hot)
    path = tmp_path / "a.jsonl"
    assert found(path, of(scores, tokens), of(hot, tokens)) & OF_SAMPLER == {"STP010"}
    [alarm] = [f.alarm for f in inspect_path(str(path), ()).findings]
    slope = alarm.evidence.got
    assert min(1, 1 / heat) - 0.02 < slope < max(1, 1 / heat) + 0.02


@pytest.mark.parametrize("kept", [2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_top_k_with_renormalised_log_probs(tmp_path, kept, seed):
    rng, logits = logits_of(seed, 2.0, words=8)
    edge = np.sort(logits, -1)[..., -kept, None]
    cut = log_softmax(np.where(logits >= edge, logits, -np.inf))
    scores, tokens = log_softmax(logits), drawn(rng, cut)
    assert "STP009" in found(tmp_path / "a.jsonl", of(scores, tokens), of(cut, tokens))


def test_the_mass_that_is_kept_is_reported(tmp_path):
    """Uniform over 8 words, 6 kept: π/π_sampler = 6/8 on every token."""
    flat = np.full((4, 64), -np.log(8.0))
    path = tmp_path / "a.jsonl"
    assert found(path, flat, flat + np.log(8 / 6)) == {"STP009"}
    [alarm] = [f.alarm for f in inspect_path(str(path), ()).findings]
    assert alarm.evidence.got == pytest.approx(0.75)


@pytest.mark.parametrize("shift", [-1, 1])
def test_one_slot_apart(tmp_path, shift):
    rng, logits = logits_of(0, 2.0)
    scores = log_softmax(logits)
    trainer = of(scores, drawn(rng, scores))
    sampler = np.roll(trainer, shift, axis=1)
    assert "STP007" in found(tmp_path / "a.jsonl", trainer, sampler)


def test_zeros_on_padding_are_silent(tmp_path):
    rng, logits = logits_of(0, 2.0)
    scores = log_softmax(logits)
    trainer = of(scores, drawn(rng, scores))
    mask = np.arange(64) < 40
    sampler = np.where(mask, trainer, 0.0)
    whole = np.broadcast_to(mask, trainer.shape)
    assert found(tmp_path / "a.jsonl", trainer, sampler, mask=whole.copy()) == set()
    assert "STP008" in found(tmp_path / "b.jsonl", trainer, sampler)


def test_too_few_tokens_say_nothing(tmp_path):
    flat = np.full((2, 8), -np.log(8.0))
    assert found(tmp_path / "a.jsonl", flat, flat + np.log(8 / 6)) == set()
