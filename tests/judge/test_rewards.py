"""Reward functions of texts: what is found of them, and what is left alone."""

import pytest
from tests.support.checking import check_text

TAGS = r"""
import re


def accuracy_reward(completions, solution, **kwargs):
    rewards = []
    for completion, gold in zip(completions, solution):
        found = re.search(r"<answer>(.*?)</answer>", completion, re.DOTALL)
        if found is None:
            rewards.append(NOTHING)
            continue
        rewards.append(1.0 if found[1].strip() == gold else WRONG)
    return rewards
"""
CHATS = r"""
import re


def given(text):
    return text.split("####")[-1].strip()


def correctness_reward_func(prompts, completions, answer, **kwargs):
    said = [completion[0]["content"] for completion in completions]
    return [2.0 if given(r) == a else 0.0 for r, a in zip(said, answer)]
"""
SINGLE = r"""
import re


def compute_score(solution_str, ground_truth, method="strict"):
    found = re.findall(r"#### (\-?[0-9]+)", solution_str)
    return {"score": 1.0 if found and found[-1] == ground_truth else 0.0}
"""
COSINE = r"""
import math
import re


def cosine_scaled_reward(completions, solution, **kwargs):
    rewards = []
    for completion, gold in zip(completions, solution):
        found = re.search(r"<answer>(.*?)</answer>", completion)
        right = found is not None and found[1] == gold
        scale = math.cos(min(len(completion) / 1000, 1) * math.pi)
        low, high = (0.5, 1.0) if right else (-0.5, -1.0)
        rewards.append(low + 0.5 * (high - low) * (1.0 + scale))
    return rewards
"""
LENGTH = """
def length_reward(completions, **kwargs):
    return [-max(0, len(c) - 20) / 20 for c in completions]
"""
DIVERSITY = """
def diversity_reward(completions, **kwargs):
    return [1.0 - completions.count(c) / len(completions) for c in completions]
"""
ONE_PROMPT = CHATS.replace("r, a in zip(said, answer)", "r in said").replace(
    "== a ", "== answer[0] "
)
JSON = r"""
import json


def json_reward(completions, answer, **kwargs):
    return [float(json.loads(c)["answer"] == a) for c, a in zip(completions, answer)]
"""


def codes(tmp_path, text):
    return [f.code for f in check_text(tmp_path, text).findings]


def tags(nothing, wrong="0.0"):
    return TAGS.replace("NOTHING", nothing).replace("WRONG", wrong)


@pytest.mark.parametrize(
    ("nothing", "wrong", "expected"),
    [
        ("0.0", "0.0", []),
        ("None", "0.0", []),
        ("-1.0", "0.0", []),
        ("1.0", "0.0", ["RWD001"]),
        ("2.0", "0.0", ["RWD001"]),
        ("0.0", "-1.0", ["RWD005"]),
        ("float('nan')", "0.0", ["RWD002"]),
        ("1 / len(completion[:0])", "0.0", ["RWD002"]),
        ("float(completion.split('<answer>')[1])", "0.0", ["RWD002"]),
    ],
)
def test_what_a_completion_without_an_answer_is_worth(tmp_path, nothing, wrong, expected):
    assert codes(tmp_path, tags(nothing, wrong)) == expected


def test_rows_that_are_left_out(tmp_path):
    text = TAGS.replace("            rewards.append(NOTHING)\n", "").replace("WRONG", "0.0")
    assert codes(tmp_path, text) == ["RWD003"]


@pytest.mark.parametrize(
    "text", [CHATS, SINGLE, COSINE, LENGTH, DIVERSITY, ONE_PROMPT], ids=range(6)
)
def test_published_rewards_are_judged_and_silent(tmp_path, text):
    report = check_text(tmp_path, text)
    assert [f.code for f in report.findings] == []
    assert report.checked == 1


def test_the_first_truth_for_all_rows_of_a_trainer(tmp_path):
    text = ONE_PROMPT + "\n\ntrainer = dict(reward_funcs=[correctness_reward_func])\n"
    assert codes(tmp_path, text) == ["RWD003"]


def test_a_caller_that_catches_is_left_alone(tmp_path):
    text = tags("1 / len(completion[:0])")
    text += "\n\ndef score(c, s):\n    try:\n        return accuracy_reward(c, s)\n"
    text += "    except ZeroDivisionError:\n        return [0.0] * len(c)\n"
    assert codes(tmp_path, text) == []


def test_texts_of_another_kind_are_not_judged(tmp_path):
    report = check_text(tmp_path, JSON)
    assert [f.code for f in report.findings] == []
    assert report.checked == 0


def test_random_rewards_are_not_judged(tmp_path):
    text = tags("random.random() * COUNT.pop()").replace(
        "import re\n", "import random\nimport re\n\nCOUNT = list(range(200))\n"
    )
    assert "RWD001" not in codes(tmp_path, text)


FIRST = SINGLE.replace("found[-1]", "found[0]")


@pytest.mark.parametrize(
    ("prompt", "text", "expected"),
    [
        ("Put the answer on the last line, after ####.", FIRST, ["RWD008"]),
        ("Put the answer on the last line, after ####.", SINGLE, []),
        ("Give the answer after ####.", FIRST, []),
        ("Finish your reply with the answer, after ####.", FIRST, ["RWD008"]),
    ],
)
def test_which_of_two_answers_counts(tmp_path, prompt, text, expected):
    assert codes(tmp_path, f'PROMPT = "{prompt}"\n' + text) == expected
