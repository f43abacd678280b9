"""The numbers behind the charts, at points worked out by hand."""

import pytest

from rlproof.report.html.blocks import Chart, NumberTable
from rlproof.report.html.curves import charts, intended

LOSS = {
    "ratio": "token", "level": "token", "surrogate": "min-clip", "clip_low": 0.2,
    "clip_high": 0.28, "clip_from": "constant", "surrogate_weight": -1.0, "factor": 1.0,
    "divergence": "none", "aggregation": "token-mean", "padding": "masked",
}  # fmt: skip


def drawn(point, codes=(), declared=None):
    return list(charts(point, codes, declared))


def at(chart, x, name):
    series = next(s for s in chart.series if s.name == name)
    return series.values[list(chart.x).index(x)]


def test_the_clip_table_of_a_published_loss():
    """min(ρA, clip(ρ)A): clipped above 1.28 for A = 1, below 0.8 for A = −1."""
    value, slope, weights = drawn(LOSS)
    assert len(value.series) == 2  # nothing to compare with
    assert at(value, 2.0, "as written, A = +1") == pytest.approx(1.28)
    assert at(value, 2.0, "as written, A = -1") == pytest.approx(-2.0)
    assert at(value, 0.5, "as written, A = +1") == pytest.approx(0.5)
    assert at(value, 0.5, "as written, A = -1") == pytest.approx(-0.8)
    assert at(slope, 2.0, "as written, A = +1") == 0
    assert at(slope, 0.5, "as written, A = +1") == pytest.approx(0.5)
    assert at(slope, 0.5, "as written, A = -1") == 0
    assert {0.8, 1.28} <= set(value.x)
    assert isinstance(weights, NumberTable)


def test_a_fault_is_drawn_beside_its_repair():
    """max(ρA, clip(ρ)A) at ρ = 2, A = 1 is 2 where min gives 1.28."""
    value = drawn({**LOSS, "surrogate": "max-clip"}, ["SUR004"])[0]
    assert at(value, 2.0, "as written, A = +1") == pytest.approx(2.0)
    assert at(value, 2.0, "repaired, A = +1") == pytest.approx(1.28)
    assert [series.dashed for series in value.series] == [False, False, True, True]


def test_a_wrong_sign_is_drawn_as_one():
    value = drawn({**LOSS, "surrogate_weight": 1.0}, ["SUR005"])[0]
    assert at(value, 1.0, "as written, A = +1") == pytest.approx(-1)
    assert at(value, 1.0, "repaired, A = +1") == pytest.approx(1)


def test_an_objective_to_maximise_is_no_fault():
    value = drawn({**LOSS, "surrogate_weight": 1.0})[0]
    assert at(value, 1.0, "as written, A = +1") == pytest.approx(1)


def test_a_declared_recipe_is_drawn():
    value = drawn({**LOSS, "surrogate": "unclipped"}, declared="dapo")[0]
    assert at(value, 2.0, "as written, A = +1") == pytest.approx(2.0)
    assert at(value, 2.0, "declared: dapo, A = +1") == pytest.approx(1.28)


def test_only_faults_that_were_found_are_repaired():
    assert intended({**LOSS, "surrogate": "max-clip"}, [], None)["surrogate"] == "max-clip"
    assert intended({**LOSS, "surrogate": "max-clip"}, ["SUR013"], None) == LOSS


def test_the_divergence():
    """k3 at log π_new − log π_ref = 1: e⁻¹ + 1 − 1, with slope 1 − e⁻¹."""
    point = {**LOSS, "divergence": "k3", "divergence_weight": 1.0, "beta_from": "arguments"}
    chart = drawn(point)[2]
    assert at(chart, 1.0, "as written, value") == pytest.approx(0.36787944)
    assert at(chart, 1.0, "as written, slope") == pytest.approx(0.63212056)
    assert "β = 1" in chart.title


def test_the_weights_of_tokens():
    """4 rows of 1 + 2 + 4 + 8 = 15 tokens in 32 slots."""
    table = drawn({**LOSS, "aggregation": "all-slots"}, ["MSK002"])[-1]
    assert table.columns[1:] == [
        "One token, as written", "Whole row, as written", "One token, repaired",
        "Whole row, repaired",
    ]  # fmt: skip
    assert table.rows[3] == pytest.approx([8.0, 1 / 32, 8 / 32, 1 / 15, 8 / 15])


def test_advantages():
    """4 of 8 right: ±1 by the population std, ±0.5 without a scale."""
    point = {"baseline": "group-mean", "scale": "population-std", "eps": 0.0}
    (chart,) = drawn(point, declared="dr_grpo")
    assert isinstance(chart, Chart)
    assert at(chart, 4.0, "as written, right") == pytest.approx(1)
    assert at(chart, 4.0, "declared: dr_grpo, wrong") == pytest.approx(-0.5)
    assert at(chart, 0.0, "as written, wrong") is None  # 0/0
    assert at(chart, 0.0, "as written, right") is None  # there is no such completion


def test_nothing_is_drawn_of_what_is_not_known():
    assert drawn({}) == []
    assert drawn({"log_probs": "log-softmax"}) == []
    assert drawn({"baseline": "length-weighted-mean", "scale": "none"}) == []
