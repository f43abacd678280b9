"""The tensors of a batch against rows written by hand."""

import pytest

torch = pytest.importorskip("torch")

from rlproof.errors import RolloutError  # noqa: E402
from rlproof.train.rollout.batch import Row, pad_left, stack  # noqa: E402

# One row whose environment injected 8 and 9 between two sampled tokens, one that ended at once.
ROWS = [
    Row([1, 2, 3], [7, 8, 9, 6], [True, False, False, True], [-0.5, 0.0, 0.0, -1.5], False),
    Row([4], [5], [True], [-0.25], True),
]
PAD = 0


def test_rows_become_padded_tensors():
    batch = stack(ROWS, PAD, version=3)
    assert batch.prompts.tolist() == [[1, 2, 3], [0, 0, 4]]
    assert batch.prompt_mask.tolist() == [[1, 1, 1], [0, 0, 1]]
    assert batch.tokens.tolist() == [[7, 8, 9, 6], [5, 0, 0, 0]]
    assert batch.mask.tolist() == [[1, 0, 0, 1], [1, 0, 0, 0]]
    assert batch.attend.tolist() == [[1, 1, 1, 1], [1, 0, 0, 0]]
    assert batch.logps.tolist() == [[-0.5, 0, 0, -1.5], [-0.25, 0, 0, 0]]
    assert batch.finished.tolist() == [False, True]
    assert batch.version == 3
    assert batch.tokens.dtype == torch.int64
    assert batch.logps.dtype == torch.float32


def test_what_the_model_is_run_on():
    batch = stack(ROWS, PAD)
    assert batch.ids.tolist() == [[1, 2, 3, 7, 8, 9, 6], [0, 0, 4, 5, 0, 0, 0]]
    assert batch.attention.tolist() == [[1] * 7, [0, 0, 1, 1, 0, 0, 0]]
    # Padding repeats the position beside it, which attention never sees.
    assert batch.positions.tolist() == [[0, 1, 2, 3, 4, 5, 6], [0, 0, 0, 1, 1, 1, 1]]


def test_completions_hold_what_was_injected_and_no_padding():
    assert stack(ROWS, PAD).completions() == [[7, 8, 9, 6], [5]]
    assert stack(ROWS, PAD).lengths.tolist() == [4, 1]


def test_rows_are_chosen_in_order():
    chosen = stack(ROWS, PAD, version=1).rows([1, 0, 1])
    assert chosen.tokens[:, 0].tolist() == [5, 7, 5]
    assert chosen.finished.tolist() == [True, False, True]
    assert chosen.version == 1
    assert chosen.to("cpu").prompts.tolist() == chosen.prompts.tolist()


def test_an_empty_completion_keeps_one_slot():
    batch = stack([Row([1], [], [], [])], PAD)
    assert batch.tokens.shape == (1, 1)
    assert batch.attend.tolist() == [[0]]


def test_broken_rows_are_named():
    with pytest.raises(RolloutError, match="row 1 has 2 tokens, 1 mask entries and 2 log-probs"):
        stack([ROWS[0], Row([1], [2, 3], [True], [0.0, 0.0])], PAD)
    with pytest.raises(RolloutError, match="no completion to stack"):
        stack([], PAD)


def test_prompts_are_padded_on_the_left():
    ids, mask = pad_left([[5, 6], [7]], 9)
    assert ids.tolist() == [[5, 6], [9, 7]]
    assert mask.tolist() == [[1, 1], [0, 1]]
