"""The cache with room against transformers' own, which concatenates."""

import pytest

torch = pytest.importorskip("torch")
cache_utils = pytest.importorskip("transformers.cache_utils")

from rlproof.train.rollout.cache import RoomyLayer  # noqa: E402


def _states(tokens, rows=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(rows, 2, tokens, 4, generator=generator) for _ in range(2)]


@pytest.mark.parametrize("room", [1, 4, 64])
def test_it_holds_what_a_concatenating_cache_holds(room):
    roomy, plain = RoomyLayer(room), cache_utils.DynamicLayer()
    for seed, tokens in enumerate([3, 1, 1, 5, 1]):
        for a, b in zip(
            roomy.update(*_states(tokens, seed=seed)), plain.update(*_states(tokens, seed=seed)),
            strict=True,
        ):  # fmt: skip
            assert torch.equal(a, b)
    assert roomy.get_seq_length() == plain.get_seq_length() == 11
    assert roomy.get_mask_sizes(1) == plain.get_mask_sizes(1)


@pytest.mark.parametrize("rows", [[2], [0, 0, 1, 2, 2], [1, 0]])
def test_rows_are_dropped_and_repeated(rows):
    roomy, plain = RoomyLayer(8), cache_utils.DynamicLayer()
    for layer in (roomy, plain):
        layer.update(*_states(3))
        layer.reorder_cache(torch.tensor(rows))
        layer.update(*_states(1, rows=len(rows), seed=1))
    assert torch.equal(roomy.keys, plain.keys)
    assert torch.equal(roomy.values, plain.values)


def test_the_last_tokens_can_be_taken_back():
    roomy = RoomyLayer(8)
    roomy.update(*_states(3))
    before = roomy.keys.clone()
    roomy.update(*_states(2, seed=1))
    roomy.forget(2)
    assert torch.equal(roomy.keys, before)
    assert roomy.get_seq_length() == 3
