"""Every combination of coordinates is identified from probes, published or planted alike."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.support.fakes import PointLoss

from rlproof.faults.registry import catalogue
from rlproof.judge.axes import values
from rlproof.judge.evaluate import evaluate
from rlproof.judge.identify import TOLERANCE, identify, residual
from rlproof.probe.loss import everything, observe
from rlproof.space import scores

CLIPPED = ["min-clip", "max-clip", "clip-only", "min-of-ratios"]
PLANTS = [f for f in catalogue().values() if f.plant and f.plant.axis != "scale"]


def point_of(ratio, surrogate, divergence, aggregation, padding, sign, clip_from, beta_from):
    point = {
        "ratio": ratio,
        "surrogate": surrogate,
        "surrogate_weight": sign,
        "factor": 1.0,
        "divergence": divergence,
        "aggregation": aggregation,
        "padding": padding,
        "level": "token",
    }
    if surrogate in CLIPPED:
        point |= {"clip_low": 0.2, "clip_high": 0.2, "clip_from": clip_from}
    if divergence != "none":
        weight = 1.0 if beta_from == "arguments" else 0.04
        point |= {"divergence_weight": weight, "beta_from": beta_from}
    return point


POINTS = st.builds(
    point_of,
    ratio=st.sampled_from(["token", "log-prob-ratio", "log-difference", "inverted"]),
    surrogate=st.sampled_from([*CLIPPED, "unclipped"]),
    divergence=st.sampled_from(["none", "k1", "k2", "k3", "k3-swapped", "absolute"]),
    aggregation=st.sampled_from(["token-mean", "sequence-mean", "sequence-sum", "all-slots"]),
    padding=st.sampled_from(["masked", "counted"]),
    sign=st.sampled_from([-1.0, 1.0]),
    clip_from=st.just("arguments"),
    beta_from=st.sampled_from(["arguments", "constant"]),
)


def identified(point):
    seen = observe(PointLoss(point))
    takes_clip = point.get("clip_from") == "arguments"
    found = identify(seen, (takes_clip, takes_clip), point.get("beta_from") == "arguments")
    return found, residual(found, seen)


@pytest.mark.slow
@given(POINTS)
@settings(derandomize=True, deadline=None, max_examples=150)
def test_a_random_point_is_recognised(point):
    # log-difference is 0 on-policy, below the clip range: clip-only has no slope there at all
    assume((point["ratio"], point["surrogate"]) != ("log-difference", "clip-only"))
    found, left = identified(point)
    assert left < TOLERANCE
    same = {axis: found.get(axis) for axis in point}
    assert same == point


@pytest.mark.parametrize(("low", "high"), [(0.2, 0.28), (0.1, 0.3)])
def test_constant_bounds_are_measured(low, high):
    point = point_of("token", "min-clip", "none", "token-mean", "masked", -1.0, "constant", "")
    found, left = identified({**point, "clip_low": low, "clip_high": high})
    assert (found["clip_low"], found["clip_high"]) == pytest.approx((low, high))
    assert (found["clip_from"], left < TOLERANCE) == ("constant", True)


def test_a_dual_clip_cap_is_measured():
    point = point_of("token", "min-clip", "none", "token-mean", "masked", -1.0, "arguments", "")
    dual = {**point, "surrogate": "dual-clip", "cap": 3.0, "clip_low": 0.2, "clip_high": 0.2}
    found, left = identified({**dual, "clip_from": "arguments"})
    assert (found["surrogate"], found["cap"], left < TOLERANCE) == ("dual-clip", 3.0, True)


def test_a_cap_that_is_divided_by_the_advantage_is_none():
    """max(…, c/A) is max(…, c·A) at A = −1, and only there."""

    class Divided(PointLoss):
        def run(self, batch):
            capped = min(batch.advantages) >= -1  # there is no cap where −c is above ρA
            return evaluate(self.point if capped else plain, batch)

    point = point_of("token", "min-clip", "none", "token-mean", "masked", -1.0, "arguments", "")
    dual = {**point, "surrogate": "dual-clip", "cap": 3.0, "clip_low": 0.2, "clip_high": 0.2}
    plain = {**dual, "surrogate": "min-clip"}
    assert "surrogate" in identify(observe(PointLoss(dual)), (True, True), False)
    assert "surrogate" not in identify(observe(Divided(dual)), (True, True), False)


def test_a_cap_on_the_ratio_is_no_dual_clip_where_the_clip_range_reaches_beyond_it():
    # the pair of tokens is asked with a range up to ρ = 5: at A = 1, ρ = e^0.5 > 1.5 is capped
    point = point_of("token", "min-clip", "none", "token-mean", "masked", -1.0, "arguments", "")
    capped = {**point, "surrogate": "two-sided", "cap": 1.5, "clip_low": 0.2, "clip_high": 0.2}
    found, left = identified({**capped, "clip_from": "arguments"})
    assert (found["surrogate"], found["level"], left < TOLERANCE) == ("two-sided", "token", True)


@pytest.mark.parametrize("bound", [(0.4, 0.4), (0.3, 0.5)])
def test_constant_bounds_of_a_geometric_mean_of_clipped_ratios_are_measured(bound):
    # one token alone shows a clip to [e^-low, e^high]; ρ = e^1.9 and e^-1.7 in a row of two have
    # the mean log-ratio (high − 1.7)/2, and not 0.1 as without the clip
    point = point_of("token", "unclipped", "none", "sequence-mean", "masked", -1.0, "constant", "")
    geometric = {"level": "geometric-of-clipped", "clip_convention": "log",
                 "clip_low": bound[0], "clip_high": bound[1], "clip_from": "constant"}  # fmt: skip
    found, left = identified({**point, **geometric})
    assert (found["clip_low"], found["clip_high"]) == pytest.approx(bound, rel=1e-4)
    assert (found["level"], left < TOLERANCE) == ("geometric-of-clipped", True)


@pytest.mark.parametrize("level", ["token", "sequence-mean", "sequence-sum"])
def test_the_level_of_the_ratio_is_recognised(level):
    point = point_of("token", "min-clip", "none", "sequence-mean", "masked", -1.0, "arguments", "")
    found, left = identified({**point, "level": level})
    assert (found["level"], left < TOLERANCE) == (level, True)


@pytest.mark.parametrize("factor", [0.125, 0.5])
def test_a_constant_divisor_is_recognised(factor):
    point = point_of("token", "min-clip", "k3", "sequence-sum", "masked", -1.0, "arguments", "")
    found, left = identified({**point, "factor": factor, "divergence_weight": 0.04})
    assert (found["aggregation"], found["factor"]) == ("constant-per-sequence", factor)
    assert left < TOLERANCE


def test_what_is_no_point_stays_unknown():
    class Cubic(PointLoss):
        def run(self, batch):
            answer = super().run(batch)
            ratio = np.exp(np.array(batch.new) - np.array(batch.old))
            extra = float((ratio**3 * np.array(batch.advantages)[:, None]).sum())
            slope = 3 * ratio**3 * np.array(batch.advantages)[:, None]
            gradient = (np.array(answer.gradient) + slope).tolist()
            return type(answer)(answer.value + extra, gradient)

    point = point_of("token", "min-clip", "none", "token-mean", "masked", -1.0, "arguments", "")
    seen = observe(Cubic(point))
    found = identify(seen, (True, True), False)
    assert "surrogate" not in found
    assert residual(found, seen) == float("inf")


@pytest.mark.parametrize(
    ("ratio", "surrogate"),
    list(product(values("ratio"), values("surrogate"))),
)
def test_slopes_are_the_derivatives_of_values(ratio, surrogate):
    """Except where a value stops gradients on purpose."""
    stopped = ratio in {"stopped", "detached"} or surrogate in scores.PUBLISHED
    point = point_of(ratio, surrogate, "k2", "token-mean", "masked", -1.0, "arguments", "")
    point |= {"clip_low": 0.2, "clip_high": 0.2, "divergence_weight": 0.5}
    batch, step = everything(), 1e-6
    got = evaluate(point, batch).gradient[1][1]

    def shifted(by):
        new = [row[:] for row in batch.new]
        new[1][1] += by
        return evaluate(point, batch.but(new=new)).value

    slope = (shifted(step) - shifted(-step)) / (2 * step)
    assert stopped or got == pytest.approx(slope, abs=1e-7)


@pytest.mark.parametrize("fault", PLANTS, ids=lambda fault: fault.code)
def test_a_planted_value_differs_from_the_one_it_replaces(fault):
    """In value or slope, with everything at once: a plant that can not be seen is none."""
    point = point_of("token", "min-clip", "k3", "token-mean", "masked", -1.0, "arguments", "")
    point |= {"divergence_weight": 0.5}
    healthy = evaluate({**point, fault.plant.axis: fault.plant.instead}, everything())
    planted = evaluate({**point, fault.plant.axis: fault.plant.value}, everything())
    assert healthy != planted


FURTHER = [
    {"surrogate": "soft-gate", "temperature_positive": 1.0, "temperature_negative": 1.05},
    {"surrogate": "soft-gate", "temperature_positive": 2.0, "temperature_negative": 3.0},
    {"surrogate": "cispo", "clip_low": 0.2, "clip_high": 0.2, "clip_from": "arguments"},
    {"surrogate": "masked-ratio", "clip_low": 0.2, "clip_high": 0.2, "clip_from": "arguments"},
    {"surrogate": "masked-probability", "clip_low": 0.2, "clip_high": 0.2,
     "clip_from": "arguments"},
    {"surrogate": "unclipped", "level": "geometric-of-clipped", "clip_convention": "log",
     "clip_low": 0.2, "clip_high": 0.2, "clip_from": "arguments", "aggregation": "sequence-mean"},
    {"divergence": "k3-ratio-weighted", "divergence_weight": 1.0, "beta_from": "arguments"},
    {"divergence": "k1-ratio-weighted", "divergence_weight": 1.0, "beta_from": "arguments"},
]  # fmt: skip


@pytest.mark.parametrize("changes", FURTHER, ids=lambda c: "-".join(map(str, c.values()))[:40])
def test_further_published_values_are_recognised(changes):
    base = point_of("token", "min-clip", "none", "token-mean", "masked", -1.0, "arguments", "")
    point = {**base, **changes}
    if point["surrogate"] == "soft-gate":
        point = {k: v for k, v in point.items() if not k.startswith("clip")}
    found, left = identified(point)
    assert left < TOLERANCE
    for axis, value in point.items():
        assert found[axis] == (pytest.approx(value) if isinstance(value, float) else value), axis
