"""Repairs of masks of lengths with a slot too many, and of rewards that read the first answer."""

import pytest
from tests.support.repairing import repair_text

from rlproof.judge.findings import FixStatus

OF_LENGTHS = """import numpy as np


def grpo_loss(new_logps, old_logps, advantages, completion_lengths, eps=0.2):
    ratio = np.exp(new_logps - old_logps)
    gain = ratio * advantages[:, None]
    cut = np.clip(ratio, 1 - eps, 1 + eps) * advantages[:, None]
    slots = np.arange(new_logps.shape[1])[None, :]
    mask = ({test}).astype(float)
    return -(np.minimum(gain, cut) * mask).sum() / mask.sum()
"""

ANSWERS = """import re

SYSTEM_PROMPT = "Reason first. Give the final answer at the end, on the last line as: #### number"
{pattern}

def read(text):
    hit = {search}
    return hit.group(1) if hit else None


def accuracy_reward(completions, answer, **kwargs):
    return [1.0 if read(c) == a else 0.0 for c, a in zip(completions, answer)]
"""


def repaired(tmp_path, text):
    report = repair_text(tmp_path, text)
    assert report.repair.status is FixStatus.VERIFIED, report.repair.message
    assert repair_text(tmp_path, report.repair.text).repair is None
    before = text.splitlines()
    return [line.strip() for line in report.repair.text.splitlines() if line not in before]


@pytest.mark.parametrize(
    ("test", "right"),
    [
        ("slots <= completion_lengths[:, None]", "slots < completion_lengths[:, None]"),
        ("completion_lengths[:, None] >= slots", "completion_lengths[:, None] > slots"),
    ],
)
def test_a_mask_has_as_many_slots_as_there_are_tokens(tmp_path, test, right):
    text = OF_LENGTHS.format(test=test)
    assert repaired(tmp_path, text) == [f"mask = ({right}).astype(float)"]


@pytest.mark.parametrize("test", ["slots < completion_lengths[:, None]"])
def test_a_mask_of_lengths_that_is_right_stays(tmp_path, test):
    assert repair_text(tmp_path, OF_LENGTHS.format(test=test)).repair is None


@pytest.mark.parametrize(
    ("pattern", "search", "line"),
    [
        ("", r're.search(r"####\s*(-?\d+)", text)',
         r'hit = ([*re.finditer(r"####\s*(-?\d+)", text)] or [None])[-1]'),
        ('ANSWER = re.compile(r"####\\s*(-?\\d+)")\n', "ANSWER.search(text)",
         "hit = ([*ANSWER.finditer(text)] or [None])[-1]"),
    ],
    ids=["function", "pattern"],
)  # fmt: skip
def test_the_last_answer_is_read(tmp_path, pattern, search, line):
    assert repaired(tmp_path, ANSWERS.format(pattern=pattern, search=search)) == [line]


def test_where_nothing_asks_for_the_last_answer_the_first_is_fine(tmp_path):
    text = ANSWERS.format(pattern="", search=r're.search(r"####\s*(-?\d+)", text)')
    text = text.replace("Give the final answer at the end, on the last line as", "Answer as")
    assert repair_text(tmp_path, text).repair is None
