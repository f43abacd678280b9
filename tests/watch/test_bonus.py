"""Recorded losses with an entropy bonus: named, and blamed for nothing but their faults.

Healthy losses come from `rlproof.space`, faulty ones from the formulas of the catalogue; the bonus
c·Σ u·H is added here, by its definition.
"""

from itertools import product

import numpy as np
import pytest
import tests.support.recorded as recorded
from tests.support.recorded import batch, record
from tests.support.sampling import one_in
from tests.watch.test_lossfit import FAULTY, OF_LOSS, answer, blamed

from rlproof.space.entropy import Entropy
from rlproof.space.published import OBJECTIVES
from rlproof.watch.bonus import through_log_probs
from rlproof.watch.command import inspect_path

COEFFICIENTS, MEANS = (0.001, 0.01, 0.1), ("same", "token-mean")
CASES = list(product(COEFFICIENTS, MEANS, (float, np.float32)))


def mean(given):
    """H̄ over the real tokens."""
    return float((given["entropy"] * given["mask"]).sum() / given["mask"].sum())


def with_bonus(path, changes, c, **more):
    """A loss of the catalogue minus c·H̄, with its entropy unless said otherwise."""
    more = {"entropy": True} | more
    return record(path, lambda a: answer(a, changes).value - c * mean(a), **more)


def of_loss(shown):
    return [f for f in shown.findings if f.rule.code in (*OF_LOSS, "STP015")]


def held(path, name, c, weights, dtype):
    """Named and silent, undeclared and declared."""
    objective = OBJECTIVES[name].objective.but(entropy=Entropy(c, aggregation=weights))
    record(path, lambda a: float(objective.loss(batch(a))[0]), dtype=dtype, entropy=True)
    for facts in ((), (f"objective={name}", f"entropy_coefficient={c}")):
        shown = inspect_path(str(path), facts)
        assert of_loss(shown) == []
        assert name in shown.said[0]
        assert "entropy" in shown.said[0]


@pytest.mark.parametrize(("at", "name"), one_in(3, enumerate(OBJECTIVES)))
def test_published_objectives_with_a_bonus_are_named(tmp_path, at, name):
    held(tmp_path / "a.jsonl", name, *CASES[at % len(CASES)])


@pytest.mark.exhaustive
@pytest.mark.parametrize(("c", "weights", "dtype"), CASES)
@pytest.mark.parametrize("name", one_in(3, OBJECTIVES))
def test_all_of_them_with_every_weight(tmp_path, name, c, weights, dtype):
    held(tmp_path / "a.jsonl", name, c, weights, dtype)


@pytest.mark.parametrize("code", FAULTY)
def test_a_fault_is_named_beside_a_bonus(tmp_path, code):
    path = with_bonus(tmp_path / "a.jsonl", FAULTY[code], 0.01, widths=(6, 4, 7), dtype=np.float32)
    assert code in blamed(path)
    assert blamed(path) <= {code, "SUR013"}  # SUR013 gives the same values as SUR004


@pytest.mark.parametrize("c", [0.01, 0.1])
@pytest.mark.parametrize("name", ["grpo", "dapo", "gspo", "grpo-tis"])
def test_half_precision_is_no_fault(tmp_path, name, c):
    objective = OBJECTIVES[name].objective.but(entropy=Entropy(c))
    path = record(
        tmp_path / "a.jsonl", lambda a: float(objective.loss(batch(a))[0]),
        dtype=np.float16, steps=20, entropy=True,
    )  # fmt: skip
    for facts in ((), (f"objective={name}", f"entropy_coefficient={c}")):
        assert of_loss(inspect_path(path, facts)) == []


def test_the_weight_and_its_sign_are_said(tmp_path):
    """c = 0.01 by construction; no code of the catalogue is an entropy that is minimised."""
    shown = inspect_path(with_bonus(tmp_path / "a.jsonl", {}, 0.01), ())
    assert "k3 · 0.04 − 0.01 · entropy, token-mean" in shown.said[0]
    shown = inspect_path(with_bonus(tmp_path / "b.jsonl", {}, -0.01), ())
    assert of_loss(shown) == []
    assert "+ 0.01 · entropy, which is minimised" in shown.said[0]


@pytest.mark.parametrize(("fact", "silent"), [("0.01", True), ("0.02", False), ("0", False)])
@pytest.mark.parametrize("name", ["grpo", "grpo-tis"])
def test_another_weight_than_the_declared_one(tmp_path, name, fact, silent):
    objective = OBJECTIVES[name].objective.but(entropy=Entropy(0.01))
    path = tmp_path / "a.jsonl"
    record(path, lambda a: float(objective.loss(batch(a))[0]), entropy=True)
    found = of_loss(inspect_path(str(path), (f"entropy_coefficient={fact}",)))
    assert [f.rule.code for f in found] == ([] if silent else ["STP002"])
    if found:
        assert found[0].alarm.evidence.got == pytest.approx(0.01)


def test_a_declared_bonus_that_is_not_there(tmp_path):
    path = with_bonus(tmp_path / "a.jsonl", {}, 0.0)
    [found] = of_loss(inspect_path(path, ("entropy_coefficient=0.02",)))
    assert (found.rule.code, found.alarm.evidence.got) == ("STP002", 0.0)


@pytest.mark.parametrize("code", [None, "SUR004"])
def test_without_the_entropy_a_declared_bonus_is_skipped(tmp_path, code):
    path = with_bonus(tmp_path / "a.jsonl", FAULTY.get(code, {}), 0.01, entropy=False)
    shown = inspect_path(path, ("entropy_coefficient=0.01", "objective=grpo"))
    assert of_loss(shown) == []
    [(checks, reason)] = [one for one in shown.skipped if "entropy" in one[1]]
    assert checks == "STP001, STP002"
    assert "can't be compared" in reason


def test_without_the_entropy_nothing_is_named(tmp_path):
    shown = inspect_path(with_bonus(tmp_path / "a.jsonl", {}, 0.01, entropy=False), ())
    assert of_loss(shown) == []
    assert "no objective known here" in shown.said[0]
    assert "record entropy=" in shown.said[0]


@pytest.mark.parametrize(("batches", "named"), [(5, False), (6, True)])
def test_three_numbers_need_six_batches(tmp_path, batches, named):
    path = with_bonus(tmp_path / "a.jsonl", {}, 0.01, steps=batches)
    said = inspect_path(path, ()).said[0]
    assert ("0.01 · entropy" in said) == named
    assert ("6 batches are needed" in said) != named


def gradients(a):
    return np.array(answer(a, {}).gradient)


@pytest.mark.parametrize("dtype", [float, np.float32])
def test_a_bonus_of_the_logits_is_in_the_loss_alone(tmp_path, dtype):
    """The gradient fixes all but c, for which three batches of losses are enough."""
    more = {"gradients": gradients, "dtype": dtype}
    said = inspect_path(with_bonus(tmp_path / "a.jsonl", {}, 0.01, steps=3, **more), ()).said[0]
    assert "k3 · 0.04 − 0.01 · entropy, token-mean" in said
    shown = inspect_path(with_bonus(tmp_path / "b.jsonl", {}, 0.01, steps=2, **more), ())
    assert of_loss(shown) == []
    assert "the gradients are those of −min-clip 0.2 of the token ratio, k3 · 0.04" in shown.said[0]
    assert "3 batches can tell" in shown.said[0]


def test_a_fault_in_gradients_is_named_beside_a_bonus(tmp_path):
    path = with_bonus(
        tmp_path / "a.jsonl", FAULTY["SUR001"], 0.01, steps=3,
        gradients=lambda a: np.array(answer(a, FAULTY["SUR001"]).gradient),
    )  # fmt: skip
    assert blamed(path) == {"SUR001"}


@pytest.mark.parametrize(("surprise", "slope"), [
    (lambda x: -x, lambda x: -np.ones_like(x)),
    (lambda x: -np.exp(x) * x, lambda x: -np.exp(x) * (1 + x)),
])  # fmt: skip
@pytest.mark.parametrize("name", ["grpo", "grpo-tis"])
def test_a_bonus_of_log_probs_is_in_the_gradient(tmp_path, monkeypatch, name, surprise, slope):
    """H is estimated by −log π or −π·log π; ∂/∂log π by hand: −1 and −π·(1 + log π)."""
    plain, made = OBJECTIVES[name].objective, recorded.arrays

    def arrays(*args, **more):
        given = made(*args, **more)
        return given | {"entropy": surprise(given["new_logps"])}

    def gradient(a):
        own = slope(a["new_logps"]) * a["mask"] / a["mask"].sum()
        return plain.gradient(batch(a)) - 0.02 * own

    monkeypatch.setattr(recorded, "arrays", arrays)
    path = record(
        tmp_path / "a.jsonl", lambda a: float(plain.loss(batch(a))[0]) - 0.02 * mean(a),
        gradients=gradient, steps=1, entropy=True,
    )  # fmt: skip
    shown = inspect_path(path, ())
    assert of_loss(shown) == []
    assert name in shown.said[0]
    assert "0.02" in shown.said[0]


def test_slopes_of_estimates_and_none_of_the_logits():
    new = -np.random.default_rng(0).uniform(0.1, 2, (3, 4))
    mask = np.ones((3, 4))
    slope = through_log_probs(-np.exp(new) * new, new, mask)
    step = 1e-6
    bumped = -np.exp(new + step) * (new + step)
    assert slope == pytest.approx((bumped + np.exp(new) * new) / step, abs=1e-5)
    assert through_log_probs(-new, new, mask) == pytest.approx(-1.0)
    assert through_log_probs(np.ones((3, 4)), new, mask) is None
    assert through_log_probs(None, new, mask) is None


def test_a_divergence_is_not_blamed_for_what_a_constant_explains(tmp_path, monkeypatch):
    """DAPO with 0.001·H̄ at 128 × 64: a k3 of weight −0.002 takes the bonus in, to float32."""
    monkeypatch.setattr(recorded, "ROWS", 128)
    objective = OBJECTIVES["dapo"].objective
    path = record(
        tmp_path / "a.jsonl", lambda a: float(objective.loss(batch(a))[0]) - 0.001 * mean(a),
        dtype=np.float32, widths=(64,),
    )  # fmt: skip
    shown = inspect_path(path, ())
    assert of_loss(shown) == []
    assert "k3 · -0.002" in shown.said[0]
    assert "a constant added" in shown.said[0]


def test_a_divergence_of_the_wrong_sign_still_is(tmp_path, monkeypatch):
    monkeypatch.setattr(recorded, "ROWS", 128)
    path = with_bonus(tmp_path / "a.jsonl", FAULTY["KLD001"], 0.0, entropy=False, widths=(64,))
    assert blamed(path) == {"KLD001"}


@pytest.mark.parametrize("odd", [np.nan, np.inf, 1e300, -1e300])
@pytest.mark.parametrize("fact", ["0.01", "nan"])
def test_an_entropy_that_is_none_is_left_out(tmp_path, monkeypatch, odd, fact):
    made = recorded.arrays

    def arrays(*args, **more):
        given = made(*args, **more)
        given["entropy"][0, 0] = odd
        return given

    monkeypatch.setattr(recorded, "arrays", arrays)
    path = record(tmp_path / "a.jsonl", lambda a: answer(a, {}).value - 0.01, entropy=True)
    shown = inspect_path(path, (f"entropy_coefficient={fact}", "accumulation=2"))
    assert of_loss(shown) == []
    assert [why for _, why in shown.skipped if "can't be compared" in why]
