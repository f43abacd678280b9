"""Parameters that hold records: from loops over them that read a reward of each entry."""

import ast
import textwrap

import pytest

from rlproof.read.names import Slot
from rlproof.read.records import Records, record_slots, records


def function(text):
    [node] = ast.parse(textwrap.dedent(text)).body
    return node


FLAT = """
def spread(rollouts):
    mean = sum(one.reward for one in rollouts) / len(rollouts)
    for one in rollouts:
        one.advantage = one.reward - mean
"""
NESTED = """
def centre(batch):
    out = []
    for row in batch:
        scores = [entry["score"] for entry in row]
        out.append([s - sum(scores) / len(scores) for s in scores])
    return out
"""
HELD = """
def centre(sample):
    mean = sum(a.reward for a in sample.answers) / len(sample.answers)
    return [a.reward - mean for a in sample.answers]
"""
BY_PROMPT = """
def centre(answers):
    by_prompt = {}
    for answer in answers:
        by_prompt.setdefault(answer.prompt, []).append(answer)
    return [a.reward - mean_of(same) for same in by_prompt.values() for a in same]
"""


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        (FLAT, "rollouts", Records("reward", (), False, None, False)),
        (NESTED, "batch", Records("score", (), True, None, True)),
        (HELD, "sample", Records("reward", (), False, "answers", False)),
        (BY_PROMPT, "answers", Records("reward", ("prompt",), False, None, False)),
    ],
)
def test_what_is_read_of_the_entries(text, name, expected):
    assert records(function(text), name) == expected
    assert record_slots(function(text)) == {name: Slot.RECORDS}


@pytest.mark.parametrize(
    "text",
    [
        "def f(rewards):\n    return [r - 1 for r in rewards]",
        "def f(batch):\n    return batch.reward - batch.reward.mean()",
        "def f(rows):\n    return [row.reward_mean for row in rows]",
        "def f(rows):\n    return [row.length for row in rows]",
    ],
)
def test_arrays_and_other_entries_are_no_records(text):
    assert record_slots(function(text)) == {}
