"""The texts tell candidates apart: the shortest distance between any two is measured."""

import numpy as np
import pytest

from rlproof.bind.extraction import Manner
from rlproof.judge import readings
from rlproof.probe.extraction import cliff, padded, steps, whole


class Function:
    """What the candidates ask of a function."""

    slots = frozenset()
    manner = Manner()


@pytest.mark.parametrize(("width", "least"), [(8, 0.6), (4, 0.1), (1, 1e-3)])
def test_no_two_candidates_agree(width, least):
    """Rows of all tokens but one, of the completion, and sums; tolerances are below half of it."""
    texts, answers = whole(), []
    for reading in readings.candidates(Function, texts):
        if reading.pick != "token":
            continue  # which slot a mean over words comes from is not asked
        values = reading.values(texts)
        for first, last, reduction in readings.windows(width, 9):
            part = readings.reduced(values[:, first:last], reduction)
            if np.isfinite(part).all():
                answers.append(part.ravel())
    every = np.array(answers)
    nearest = min(np.abs(every[i + 1 :] - one).max(1).min() for i, one in enumerate(every[:-1]))
    assert len(every) > 50
    assert nearest > least
    assert readings.CLOSE < 1e-3 / 2


def test_widths_rows_and_words_are_different_numbers():
    texts = whole()
    sizes = [len(texts.prompts), texts.before, texts.after, len(texts.ids()[0]), 11]
    assert sizes == [3, 5, 4, 9, 11]
    assert len({tuple(row) for row in texts.ids()}) == 3


@pytest.mark.parametrize("left", [False, True])
def test_padding_keeps_the_widths(left):
    texts = padded(left=left)
    assert (texts.before, texts.after) == (5, 4)
    assert sum(map(sum, texts.completion_mask())) == 2 + 4 + 3
    assert sum(map(sum, texts.prompt_mask())) == (3 + 5 + 1 if left else 15)


def test_texts_for_readers():
    assert steps(left=True).ids()[0] == [0, 1, 1, 1, 1]
    assert steps(right=True).ids()[0] == [1, 1, 1, 1, 0]
    assert steps(word=2).ids()[0] == [2] * 5
    assert cliff(2).table.logits(2, 0)[1] == 120.0
