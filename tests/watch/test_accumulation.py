"""STP015: 1/k² of an objective is reported, 1 and 1/k and any other factor are not."""

import numpy as np
import pytest
import tests.support.recorded as recorded
from tests.support.recorded import batch, record
from tests.watch.test_bonus import mean, of_loss
from tests.watch.test_lossfit import FAULTY, answer

from rlproof.space.published import OBJECTIVES
from rlproof.watch.command import inspect_path

OF_BOTH = ("grpo", "grpo-tis")
"""By coordinates, and by its name alone: a correction is no coordinate."""


def scaled(path, factor, name="grpo", gradient=False, c=0.0, **more):
    objective = OBJECTIVES[name].objective
    more = {"steps": 2 if gradient else 6, "dtype": np.float32} | more
    return record(
        path, lambda a: factor * (float(objective.loss(batch(a))[0]) - c * mean(a)),
        gradients=(lambda a: factor * objective.gradient(batch(a))) if gradient else None, **more,
    )  # fmt: skip


def codes(path, *facts):
    return [f.rule.code for f in of_loss(inspect_path(path, facts))]


@pytest.mark.parametrize("k", [2, 4, 8])
@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("name", OF_BOTH)
def test_divided_twice(tmp_path, k, gradient, name):
    path = scaled(tmp_path / "a.jsonl", 1 / k**2, name, gradient)
    [found] = of_loss(inspect_path(path, (f"accumulation={k}",)))
    assert (found.rule.code, str(found.severity)) == ("STP015", "error")
    assert found.faults == ("AGG002",)
    assert found.alarm.evidence.got == pytest.approx(1 / k**2, rel=1e-4)
    assert f"is 1/{k**2} of" in found.alarm.message


@pytest.mark.parametrize("k", [2, 4, 8])
@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("name", OF_BOTH)
def test_divided_once_or_not_at_all(tmp_path, k, gradient, name):
    for at, factor in enumerate((1, 1 / k)):
        path = scaled(tmp_path / f"{at}.jsonl", factor, name, gradient)
        shown = inspect_path(path, (f"accumulation={k}",))
        assert of_loss(shown) == []
        assert name in shown.said[0]
    assert f"divided by the {k} batches that are accumulated" in shown.said[0]


@pytest.mark.parametrize("factor", [1 / 3, 1 / 8, 1 / 64, 0.0626, 4.0, 16.0])
@pytest.mark.parametrize("name", OF_BOTH)
def test_any_other_factor_is_no_finding(tmp_path, factor, name):
    path = scaled(tmp_path / "a.jsonl", factor, name)
    assert codes(path, "accumulation=4") == []


@pytest.mark.parametrize("facts", [(), ("accumulation=1",)])
def test_undeclared_or_one_is_silent(tmp_path, facts):
    for factor in (1, 1 / 4, 1 / 16):
        assert codes(scaled(tmp_path / f"{factor}.jsonl", factor), *facts) == []


@pytest.mark.parametrize("factor", [1 / 8, 1 / 3, 1, 1 / 4])
@pytest.mark.parametrize("name", OF_BOTH)
def test_half_precision_makes_no_factor_of_another(tmp_path, factor, name):
    path = scaled(tmp_path / "a.jsonl", factor, name, dtype=np.float16, steps=16)
    assert "STP015" not in codes(path, "accumulation=4")


def test_many_accumulated_batches_leave_too_little_to_tell(tmp_path):
    """1/64² of a loss is of the size of float32's rounding beside advantages of 1."""
    path = scaled(tmp_path / "a.jsonl", 1 / 4000)
    assert codes(path, "accumulation=64") == []


def test_three_batches_of_losses_do_not_decide(tmp_path):
    assert codes(scaled(tmp_path / "a.jsonl", 1 / 16, steps=3), "accumulation=4") == []
    assert codes(scaled(tmp_path / "b.jsonl", 1 / 16, steps=4), "accumulation=4") == ["STP015"]


def test_a_record_declares_it(tmp_path):
    path = scaled(tmp_path / "a.jsonl", 1 / 16, facts={"accumulation": 4})
    assert codes(path) == ["STP015"]


def test_a_bonus_is_scaled_along(tmp_path):
    path = scaled(tmp_path / "a.jsonl", 1 / 16, "grpo-tis", c=0.01, entropy=True)
    assert codes(path, "accumulation=4", "entropy_coefficient=0.01") == ["STP015"]
    path = scaled(tmp_path / "b.jsonl", 1 / 4, "grpo-tis", c=0.01, entropy=True)
    assert codes(path, "accumulation=4", "entropy_coefficient=0.01") == []


def test_beside_another_fault_both_are_named(tmp_path):
    path = record(tmp_path / "a.jsonl", lambda a: answer(a, FAULTY["SUR001"]).value / 16)
    assert codes(path, "accumulation=4") == ["STP001", "STP015"]


def test_completions_of_one_length_say_nothing(tmp_path, monkeypatch):
    """Σ/(B·L) of Dr. GRPO with L = 4·T is 1/4 of the token mean, and right."""
    made = recorded.arrays

    def whole(*args, **more):
        given = made(*args, **more)
        return given | {"mask": np.ones_like(given["mask"])}

    monkeypatch.setattr(recorded, "arrays", whole)
    assert codes(scaled(tmp_path / "a.jsonl", 1 / 4), "accumulation=2") == []


def test_a_sum_over_an_unknown_constant_says_nothing(tmp_path):
    path = scaled(tmp_path / "a.jsonl", 1 / 16, "dr_grpo")
    assert codes(path, "accumulation=4") == []
