"""What a repair may change of what a function computes, and the cases that it must pass."""

import math

import pytest

from rlproof.faults.model import Severity
from rlproof.faults.registry import catalogue
from rlproof.faults.seen import AdvantagesSeen, Answer, LossSeen, Place, Seen
from rlproof.judge.evaluate import evaluate
from rlproof.judge.findings import FileReport, Finding, TargetReport
from rlproof.repair.cases import Cases, batches, near, predicted
from rlproof.repair.points import MOVES, strays

POINT = {
    "ratio": "token",
    "surrogate": "max-clip",
    "surrogate_weight": -1.0,
    "clip_low": 0.2,
    "divergence": "k3",
    "divergence_weight": 1.0,
    "beta_from": "arguments",
    "aggregation": "token-mean",
    "padding": "masked",
}


def report(**changes):
    point = {k: v for k, v in {**POINT, **changes}.items() if v is not None}
    return FileReport("a.py", (TargetReport("loss", "f", 1, point),))


def fault(code, function="f"):
    return Finding(catalogue()[code], Severity.ERROR, Place(function, 1, 1), "")


@pytest.mark.parametrize(
    ("code", "changes", "allowed"),
    [
        ("SUR004", {"surrogate": "min-clip"}, True),
        ("SUR004", {"surrogate": "clip-only"}, False),  # SUR009, a fault itself
        ("SUR004", {"surrogate": "min-clip", "aggregation": "sequence-mean"}, False),
        ("SUR004", {"surrogate": "min-clip", "clip_low": 0.3}, False),
        ("SUR005", {"surrogate_weight": 1.0}, True),
        ("SUR005", {"surrogate_weight": 2.0}, False),
        ("KLD001", {"divergence_weight": -1.0}, True),
        ("KLD001", {"divergence_weight": 0.5}, False),
        ("KLD007", {"divergence_weight": 0.04, "beta_from": "constant"}, True),
        ("KLD001", {"divergence": "none"}, False),
        ("MSK001", {"aggregation": "sequence-mean"}, True),
        ("MSK001", {"padding": None}, True),
        ("MSK001", {"ratio": None}, False),
    ],
)
def test_what_may_move(code, changes, allowed):
    assert (strays(report(), report(**changes), [fault(code)]) == []) == allowed


def test_a_fault_counts_for_all_branches_of_its_function():
    """Of branches that share a line only the first is named in a finding."""
    moved = report(surrogate="min-clip")
    assert strays(report(), moved, [fault("SUR004", "f [mean=False]")]) == []
    assert strays(report(), moved, [fault("SUR004", "g [mean=False]")]) == ["f"]


def test_a_fault_counts_for_the_functions_that_it_calls():
    moved = report(surrogate="min-clip")
    assert strays(report(), moved, [fault("SUR004", "caller")], {"f": {"caller"}}) == []
    assert strays(report(), moved, [fault("SUR004", "caller")], {"g": {"caller"}}) == ["f"]


def test_a_function_without_a_fault_keeps_everything():
    moved = report(surrogate="min-clip")
    assert strays(report(), moved, [fault("SUR004", "g")]) == ["f"]
    assert strays(report(), report(clip_low=0.2 + 1e-9), []) == []


def test_moves_speak_of_faults_that_exist():
    known = set(catalogue())
    planned = {"ADV013", "ADV016"}  # of the first edition, without a detector so far
    assert set(MOVES) - planned <= known


def seen(run, *more):
    point = {**POINT, "surrogate": "min-clip", "level": "token"}
    slots = frozenset({"divergence coefficient", *more})
    return Seen((LossSeen("f", slots, {}, point, lambda b: run(point, b), evaluate),))


def test_all_cases_pass_for_the_formula_itself():
    """A loss that is told of no padding is given none: there are fewer cases."""
    masked, bare = Cases(), Cases()
    masked.run(seen(evaluate, "mask"))
    assert masked.total == masked.passed == len(list(batches(True)))
    bare.run(seen(evaluate))
    assert bare.total == bare.passed == masked.total - 12  # 3 sets of lengths, 2 betas, 2 pairs


@pytest.mark.parametrize(("noise", "passes"), [(5e-4, True), (5e-3, False)])
def test_equal_rewards_leave_the_rounding_of_their_mean(noise, passes):
    """The group of eight equal rewards; all other groups come out exactly."""
    point = {"baseline": "group-mean", "scale": "population-std", "eps": 1e-4}

    def run(rewards, size):
        exact = predicted(point, rewards, size)
        return exact if any(exact) else [noise] * len(exact)

    facts = {"one_group": False}
    cases = Cases()
    cases.run(Seen(advantages=(AdvantagesSeen("f", frozenset(), {}, point, run, facts),)))
    assert (cases.total - cases.passed == 0) is passes


def test_a_function_of_one_group_is_held_to_the_statistics_of_all_rewards():
    point = {"baseline": "group-mean", "scale": "population-std", "eps": 1e-4}

    def run(rewards, _):
        return predicted(point, rewards, len(rewards))

    def cases(one_group):
        found = Cases()
        facts = {"one_group": one_group}
        found.run(Seen(advantages=(AdvantagesSeen("f", frozenset(), {}, point, run, facts),)))
        return found

    assert cases(True).passed == cases(True).total
    assert cases(False).passed < cases(False).total


@pytest.mark.parametrize("slip", ["value", "gradient"])
def test_a_wrong_value_or_gradient_fails(slip):
    def wrong(point, batch):
        answer = evaluate(point, batch)
        if slip == "value":
            return Answer(answer.value * 1.01 + 0.001, answer.gradient)
        return Answer(answer.value, [[x * 1.01 + 0.001 for x in row] for row in answer.gradient])

    cases = Cases()
    cases.run(seen(wrong))
    assert cases.total > 0
    assert cases.passed == 0


def test_no_case_lies_on_a_kink():
    """A ratio of 0.8, 1.2, 1.28, 2, 3, 4, 5 or 10 is a bound or cap of a published recipe."""
    kinks = (0.8, 1.2, 1.28, 2.0, 3.0, 4.0, 5.0, 10.0)
    for batch in batches(False):
        for new, old in zip(batch.new, batch.old, strict=True):
            for x, y in zip(new, old, strict=True):
                assert all(abs(math.exp(x - y) - kink) > 1e-3 for kink in kinks)


def test_predicted_advantages():
    """Groups (0, 1) and (1, 1): ±½ over ½ + eps, and 0; over the sample std, √½."""
    point = {"baseline": "group-mean", "scale": "population-std", "eps": 0.1}
    assert predicted(point, [0.0, 1.0, 1.0, 1.0], 2) == pytest.approx([-0.5 / 0.6, 0.5 / 0.6, 0, 0])
    point = {"baseline": "group-mean", "scale": "sample-std", "sign": "inverted"}
    assert predicted(point, [0.0, 1.0], 2) == pytest.approx([math.sqrt(0.5), -math.sqrt(0.5)])
    point = {
        "baseline": "group-mean",
        "scale": "population-std",
        "eps": 0.75,
        "eps_place": "sqrt(var + eps)",
    }
    assert predicted(point, [0.0, 1.0], 2) == pytest.approx([-0.5, 0.5])  # √(¼ + ¾) = 1


def test_near():
    assert near(1.0, 1.001)
    assert not near(1.0, 1.01)
    assert not near(float("nan"), float("nan"))
