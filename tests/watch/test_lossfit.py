"""Recorded losses are named where they are known, blamed only where they are at fault.

The losses of healthy cases come from `rlproof.space`, those of faulty ones from the formulas of
the catalogue (`rlproof.judge.evaluate`), neither of which the fit knows anything about.
"""

import numpy as np
import pytest
from tests.support.recorded import arrays, batch, record
from tests.support.sampling import one_in

from rlproof.faults.seen import Batch as Asked
from rlproof.judge.evaluate import evaluate
from rlproof.space.published import OBJECTIVES
from rlproof.watch.command import inspect_path
from rlproof.watch.record import Recorder

HEALTHY = {
    "ratio": "token", "surrogate": "min-clip", "clip_low": 0.2, "clip_high": 0.2,
    "surrogate_weight": -1.0, "divergence": "k3", "divergence_weight": 0.04,
    "aggregation": "token-mean", "padding": "masked",
}  # fmt: skip
FAULTY = {
    "SUR001": {"ratio": "log-prob-ratio"},
    "SUR002": {"ratio": "log-difference"},
    "SUR003": {"ratio": "inverted"},
    "SUR004": {"surrogate": "max-clip"},
    "SUR005": {"surrogate_weight": 1.0},
    "SUR006": {"surrogate": "min-of-ratios"},
    "SUR009": {"surrogate": "clip-only"},
    "KLD001": {"divergence_weight": -0.04},
    "KLD002": {"divergence": "k3-swapped"},
    "MSK001": {"padding": "counted"},
    "MSK002": {"aggregation": "all-slots"},
}
ONLY_IN_GRADIENTS = {"SUR012": {"ratio": "stopped"}, "KLD003": {"divergence": "k3-stopped"}}
OF_LOSS = ("STP001", "STP002")


def answer(given, changes):
    asked = Asked(
        new=given["new_logps"].tolist(), old=given["old_logps"].tolist(),
        ref=given["ref_logps"].tolist(), advantages=given["advantages"].tolist(),
        mask=given["mask"].tolist(),
    )  # fmt: skip
    return evaluate(HEALTHY | changes, asked)


def planted(path, changes, gradient=False, **more):
    return record(
        path,
        lambda a: answer(a, changes).value,
        gradients=(lambda a: np.array(answer(a, changes).gradient)) if gradient else None,
        **more,
    )


def blamed(path, *facts):
    shown = inspect_path(path, facts)
    return {code for f in shown.findings if f.rule.code == "STP001" for code in f.faults}


@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_published_objectives_are_silent(tmp_path, name, declared):
    objective = OBJECTIVES[name].objective
    path = record(tmp_path / "a.jsonl", lambda a: float(objective.loss(batch(a))[0]))
    shown = inspect_path(path, (f"objective={name}",) if declared else ())
    assert [f for f in shown.findings if f.rule.code in OF_LOSS] == []
    assert name in shown.said[0]


@pytest.mark.parametrize("name", ["grpo", "dapo", "gspo", "cispo", "grpo-tis", "dr_grpo", "topr"])
def test_their_gradients_are_silent_too(tmp_path, name):
    objective = OBJECTIVES[name].objective
    path = record(
        tmp_path / "a.jsonl", lambda a: float(objective.loss(batch(a))[0]), steps=1,
        gradients=lambda a: objective.gradient(batch(a)), dtype=np.float32,
    )  # fmt: skip
    shown = inspect_path(path, (f"objective={name}",))
    assert [f for f in shown.findings if f.rule.code in OF_LOSS] == []
    assert name in shown.said[0]


@pytest.mark.parametrize("code", one_in(2, FAULTY))
@pytest.mark.parametrize("dtype", [float, np.float32])
def test_a_fault_is_named_from_losses_alone(tmp_path, code, dtype):
    path = planted(tmp_path / "a.jsonl", FAULTY[code], dtype=dtype, widths=(6, 4, 7))
    assert code in blamed(path)


@pytest.mark.parametrize("code", [*FAULTY, *ONLY_IN_GRADIENTS])
def test_a_fault_is_named_from_one_gradient(tmp_path, code):
    changes = (FAULTY | ONLY_IN_GRADIENTS)[code]
    path = planted(tmp_path / "a.jsonl", changes, gradient=True, steps=2, widths=(6, 4))
    assert code in blamed(path)


def test_all_slots_of_one_width_are_a_constant(tmp_path):
    """Σ/(B·T) with B and T fixed is Dr. GRPO's constant: no fault can be told."""
    path = planted(tmp_path / "a.jsonl", FAULTY["MSK002"])
    assert blamed(path) == set()
    assert "sequence-sum × 0.1667" in inspect_path(path, ()).said[0]  # 1/6


@pytest.mark.parametrize("code", ONLY_IN_GRADIENTS)
def test_what_only_a_gradient_shows_is_not_guessed(tmp_path, code):
    assert blamed(planted(tmp_path / "a.jsonl", ONLY_IN_GRADIENTS[code])) == set()


def test_two_faults_that_cancel_in_sign_are_both_named(tmp_path):
    changes = FAULTY["SUR001"] | FAULTY["SUR005"]
    assert {"SUR001", "SUR005"} <= blamed(planted(tmp_path / "a.jsonl", changes))


def test_an_unknown_objective_is_no_fault(tmp_path):
    path = record(tmp_path / "a.jsonl", lambda a: float((a["new_logps"] ** 3 * a["mask"]).sum()))
    shown = inspect_path(path, ())
    assert [f for f in shown.findings if f.rule.code in OF_LOSS] == []
    assert "no objective known here" in shown.said[0]


def test_three_losses_decide_nothing(tmp_path):
    shown = inspect_path(planted(tmp_path / "a.jsonl", FAULTY["SUR004"], steps=3), ())
    assert [f for f in shown.findings if f.rule.code in OF_LOSS] == []
    assert "do not decide" in shown.said[0]


def test_another_objective_than_the_declared_one(tmp_path):
    path = planted(tmp_path / "a.jsonl", {}, objective="grpo")
    [found] = [f for f in inspect_path(path, ()).findings if f.rule.code in OF_LOSS]
    assert (found.rule.code, str(found.severity)) == ("STP002", "warning")
    assert "token-mean" in found.alarm.message


def test_another_beta_than_the_declared_one(tmp_path):
    path = planted(tmp_path / "a.jsonl", {"divergence_weight": 0.1})
    assert inspect_path(path, ("beta=0.1",)).exit_code == 0
    found = {f.rule.code: f for f in inspect_path(path, ("beta=0.04",)).findings}
    assert found["STP002"].alarm.evidence.got == pytest.approx(0.1)


def test_a_part_of_a_batch_is_not_held_to_its_loss(tmp_path):
    rng, recorder = np.random.default_rng(0), Recorder(tmp_path / "a.jsonl", every=1, max_slots=48)
    for step in range(6):
        given = arrays(rng)
        loss = answer(given, FAULTY["SUR004"]).value
        given.pop("entropy")
        recorder.record(step=step, loss=loss, groups=4, **given)
    recorder.close()
    assert blamed(str(tmp_path / "a.jsonl")) == set()


def test_padding_that_holds_nothing_is_left_out(tmp_path):
    def with_nan(a):
        value = answer(a, {}).value
        for name in ("new_logps", "old_logps", "ref_logps"):
            a[name][a["mask"] == 0] = np.nan
        return value

    rng_path = record(tmp_path / "a.jsonl", with_nan)
    assert "k3 · 0.04, token-mean" in inspect_path(rng_path, ()).said[0]


HALF = ("grpo", "dapo", "gspo", "cispo", "sapo", "rloo", "vespo", "dro", "prompt-mean")


def in_half(path, losses, gradients=None):
    """Log-probs recorded in float16 of a loss that was computed from finer ones."""
    rng, recorder = np.random.default_rng(0), Recorder(path, every=1)
    for step in range(16):
        given = arrays(rng)
        loss, grad = losses(given), gradients and gradients(given).astype(np.float16)
        given.pop("entropy")
        halved = {name: values.astype(np.float16) for name, values in given.items()}
        recorder.record(step=step, loss=loss, grad=grad, groups=4, **halved)
    recorder.close()
    return inspect_path(str(path), ())


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("name", one_in(3, HALF))
def test_half_precision_is_no_fault(tmp_path, name, gradient):
    objective = OBJECTIVES[name].objective
    shown = in_half(
        tmp_path / "a.jsonl", lambda a: float(objective.loss(batch(a))[0]),
        (lambda a: objective.gradient(batch(a))) if gradient else None,
    )  # fmt: skip
    assert [f for f in shown.findings if f.rule.code in OF_LOSS] == []


@pytest.mark.parametrize("code", FAULTY)
def test_half_precision_blames_nobody_else(tmp_path, code):
    """Some faults drown in rounding; none is taken for another."""
    shown = in_half(tmp_path / "a.jsonl", lambda a: answer(a, FAULTY[code]).value)
    found = {c for f in shown.findings if f.rule.code == "STP001" for c in f.faults}
    assert found <= {code, "SUR013"}
    assert (found != set()) == (
        code in ("SUR001", "SUR002", "SUR003", "SUR004", "SUR005", "MSK001")
    )
    assert found or "within the rounding of half precision" in shown.said[0]
