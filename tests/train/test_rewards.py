"""Reward functions that do what they shouldn't: each is named, nothing is taken for a reward."""

from __future__ import annotations

import asyncio
import math
import time

import pytest

from rlproof.errors import ConfigError, RewardError
from rlproof.train.rewards import RewardFunctions, named_function


def length(prompts, completions, completion_ids, **columns):
    return [float(len(ids)) for ids in completion_ids]


def call(*functions, timeout=5.0, rows=2, **columns):
    made = RewardFunctions(functions, timeout)
    return made(["p"] * rows, ["ab"] * rows, [[1, 2]] * rows, columns)


def test_the_signature_is_that_of_trl():
    seen = {}

    def reward(prompts, completions, completion_ids, answer, **rest):
        seen.update(prompts=prompts, completions=completions, ids=completion_ids, answer=answer)
        return [1, True]

    assert call(reward, answer=["x", "y"]) == [[1.0], [1.0]]
    assert seen == {"prompts": ["p", "p"], "completions": ["ab", "ab"], "ids": [[1, 2], [1, 2]],
                    "answer": ["x", "y"]}  # fmt: skip


def test_several_functions_one_of_them_silent_on_a_row():
    def sometimes(completions, **_):
        return [None, 3.0]

    rows = call(length, sometimes)
    assert rows[1] == [2.0, 3.0]
    assert rows[0][0] == 2.0
    assert math.isnan(rows[0][1])


def test_asynchronous_functions_run_together():
    order = []

    async def slow(completions, **_):
        order.append("slow begins")
        await asyncio.sleep(0.05)
        order.append("slow ends")
        return [1.0, 1.0]

    async def quick(completions, **_):
        order.append("quick")
        return [2.0, 2.0]

    assert call(slow, quick, length) == [[1.0, 2.0, 2.0], [1.0, 2.0, 2.0]]
    assert order == ["slow begins", "quick", "slow ends"]


def raises(completions, **_):
    raise KeyError("answer")


def hangs(completions, **_):
    time.sleep(60)


async def hangs_later(completions, **_):
    await asyncio.sleep(60)


async def raises_later(completions, **_):
    raise ValueError("no judge")


def of(value):
    def made(completions, **_):
        return value

    return made


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (raises, "raises raised KeyError: 'answer' at test_rewards.py"),
        (raises_later, "raises_later raised ValueError: no judge"),
        (of([1.0]), "returned 1 rewards for 2 completions"),
        (of([1.0, float("nan")]), "returned nan for row 1; expected a finite number"),
        (of([float("inf"), 1.0]), "returned inf for row 0"),
        (of(["1", 2.0]), "returned '1' for row 0"),
        (of(3.0), "returned float, expected a list of 2"),
        (of(None), "returned NoneType, expected a list"),
        (of([1.0, None]), "row 1: reward function made returned None"),
    ],
)
def test_what_is_no_reward_is_refused(function, message):
    with pytest.raises(RewardError, match=message.replace("(", r"\(")):
        call(function)


@pytest.mark.parametrize("function", [hangs, hangs_later])
def test_a_function_that_hangs_is_left_after_the_timeout(function):
    began = time.monotonic()
    with pytest.raises(RewardError, match=f"{function.__name__} has not returned after 0.2 s"):
        call(length, function, timeout=0.2)
    assert time.monotonic() - began < 5


def test_one_of_two_asynchronous_functions_hangs_and_is_named():
    async def quick(completions, **_):
        return [1.0, 1.0]

    with pytest.raises(RewardError, match="function hangs_later has not"):
        call(quick, hangs_later, timeout=0.2)


def test_an_array_of_rewards():
    numpy = pytest.importorskip("numpy")
    assert call(of(numpy.array([1, 2]))) == [[1.0], [2.0]]


def test_no_function():
    with pytest.raises(ConfigError, match="functions is empty"):
        RewardFunctions([])


def test_functions_of_one_name_are_told_apart():
    assert RewardFunctions([of([1]), of([2]), length]).names == ("made", "made-2", "length")


def test_a_function_by_name(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "my_rewards_for_a_test.py").write_text("def exact(completions, **_): return [0]")
    assert named_function("my_rewards_for_a_test:exact", tmp_path)(completions=[]) == [0]
    for text, message in (
        ("my_rewards_for_a_test:exactt", "did you mean exact"),
        ("my_rewards_for_a_test", "expected module:function"),
        ("no_such_module_here:f", "importing no_such_module_here failed"),
    ):
        with pytest.raises(ConfigError, match=message):
            named_function(text, tmp_path)
