"""Recorded advantages are traced back to rewards and groups."""

import numpy as np
import pytest

from rlproof.space.advantages import Advantage, advantages
from rlproof.space.published import OBJECTIVES
from rlproof.watch.advantagefit import formulas
from rlproof.watch.command import inspect_path
from rlproof.watch.record import Recorder

SIZE, GROUPS = 4, 5


def recorded(path, formula, steps=4, groups=SIZE, rewards_of=None, **more):
    rng, recorder = np.random.default_rng(1), Recorder(path, every=1)
    for step in range(steps):
        rewards = rng.integers(0, 3, SIZE * GROUPS) / 2
        if rewards_of:
            rewards = rewards_of(rewards)
        recorder.record(
            step=step, rewards=rewards, groups=groups, advantages=formula(rewards), **more
        )
    recorder.close()
    return str(path)


@pytest.mark.parametrize(
    "how", list(formulas()), ids=lambda h: f"{h.baseline}-{h.scale}-{h.eps}-{h.whiten}"
)
def test_every_formula_is_silent_or_named_as_one_of_the_batch(tmp_path, how):
    lengths = np.arange(1.0, SIZE * GROUPS + 1)
    path = recorded(
        tmp_path / "a.jsonl", lambda r: advantages(r, SIZE, how, lengths),
        new_logps=-np.ones((SIZE * GROUPS, SIZE * GROUPS)), mask=np.tri(SIZE * GROUPS),
    )  # fmt: skip
    shown = inspect_path(path, ())
    assert shown.exit_code == 0  # nothing is declared: at most a note
    whole = how.baseline == "batch-mean" or how.scale.startswith("batch") or how.whiten != "none"
    notes = [f for f in shown.findings if f.rule.code == "STP003"]
    if not whole:
        assert notes == []


@pytest.mark.parametrize("name", OBJECTIVES)
def test_declared_advantages_are_silent(tmp_path, name):
    how = OBJECTIVES[name].objective.advantage
    lengths = np.arange(1.0, SIZE * GROUPS + 1)
    path = recorded(
        tmp_path / "a.jsonl", lambda r: advantages(r, SIZE, how, lengths), objective=name,
        new_logps=-np.ones((SIZE * GROUPS, SIZE * GROUPS)), mask=np.tri(SIZE * GROUPS),
    )  # fmt: skip
    assert [f for f in inspect_path(path, ()).findings if str(f.severity) != "note"] == []


def over_batch(rewards):
    return (rewards - rewards.mean()) / rewards.std()


def test_batch_statistics_are_an_error_where_groups_are_declared(tmp_path):
    path = recorded(tmp_path / "a.jsonl", over_batch)
    [note] = inspect_path(path, ()).findings
    assert str(note.severity) == "note"
    [error] = inspect_path(path, ("objective=grpo",)).findings
    assert (error.rule.code, str(error.severity), error.faults) == ("STP003", "error", ("ADV001",))


def test_rows_in_any_order(tmp_path):
    ids = np.tile(np.arange(GROUPS), SIZE)
    path = recorded(
        tmp_path / "a.jsonl", lambda r: advantages(r, ids, Advantage()), groups=ids,
        objective="grpo",
    )  # fmt: skip
    shown = inspect_path(path, ())
    assert shown.findings == ()
    assert "group-mean baseline over population-std" in shown.said[0]


def test_a_column_of_advantages(tmp_path):
    path = recorded(tmp_path / "a.jsonl", lambda r: advantages(r, SIZE, Advantage())[:, None])
    assert "group-mean baseline over population-std" in inspect_path(path, ()).said[0]


def test_consecutive_groups_where_the_rows_alternate(tmp_path):
    """ADV002: the batch repeats A, B, A, B and is reshaped as if it held A, A, B, B."""
    ids = np.tile(np.arange(GROUPS), SIZE)
    path = recorded(
        tmp_path / "a.jsonl", lambda r: advantages(r, SIZE, Advantage()), groups=ids,
        objective="grpo",
    )  # fmt: skip
    assert "no formula known here" in inspect_path(path, ()).said[0]


def test_baseline_minus_reward(tmp_path):
    path = recorded(tmp_path / "a.jsonl", lambda r: -advantages(r, SIZE, Advantage()))
    [found] = inspect_path(path, ()).findings
    assert (found.rule.code, found.faults) == ("STP003", ("ADV015",))


def test_equal_rewards_pushed_by_rounding(tmp_path):
    """Four rows of 0.2, and rows whose std is 0 take 1: what an equality guard lets through."""

    def formula(rewards):
        groups = rewards.reshape(-1, SIZE)
        made = [[(r - sum(g) / SIZE) for r in g] for g in groups.tolist()]
        std = [(sum(x * x for x in g) / SIZE) ** 0.5 for g in made]
        scaled = [[x / s if s else 1.0 for x in g] for g, s in zip(made, std, strict=True)]
        return np.array(scaled).ravel()

    def with_equal(rewards):
        rewards[:SIZE] = 0.2
        return rewards

    path = recorded(tmp_path / "a.jsonl", formula, rewards_of=with_equal)
    codes = {f.rule.code for f in inspect_path(path, ()).findings}
    assert codes == {"STP004"}


def test_random_advantages_are_no_finding(tmp_path):
    rng = np.random.default_rng(3)
    path = recorded(tmp_path / "a.jsonl", lambda r: rng.normal(size=len(r)), objective="grpo")
    assert inspect_path(path, ()).findings == ()
