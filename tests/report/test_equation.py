"""Points written out. Expected equations are put together by hand from the coordinates."""

import pytest

from rlproof.judge.points import point_of
from rlproof.report.equation import equations
from rlproof.report.html.mathml import mathml
from rlproof.space.objective import Objective
from rlproof.space.published import OBJECTIVES

SEED = {
    "ratio": "log-prob-ratio", "surrogate": "max-clip", "clip_low": 0.2, "clip_high": 0.28,
    "surrogate_weight": 1.0, "factor": 1.0, "divergence": "k3", "divergence_weight": 1.0,
    "beta_from": "arguments", "aggregation": "all-slots", "padding": "counted", "level": "token",
}  # fmt: skip


def written(point):
    return {line.label: line.latex for line in equations(point)}


def test_a_broken_loss():
    lines = written(SEED)
    assert list(lines) == [
        "loss", "weight of a slot", "surrogate", "ratio", "clip bounds", "divergence", "constants",
    ]  # fmt: skip
    assert lines["loss"] == r"L = \sum_{i,t} w_{i,t}\, \left(s_{i,t} + \beta\, d_{i,t}\right)"
    assert lines["weight of a slot"] == r"w_{i,t} = \frac{1}{B\, T}"
    assert lines["ratio"].startswith(r"\rho_{i,t} = \frac{\log\pi_\theta}")
    assert lines["constants"].endswith(r"\varepsilon_{\text{high}} = 0.28")


@pytest.mark.parametrize(
    ("changes", "loss"),
    [
        ({"surrogate_weight": -1.0, "divergence": "none", "padding": "masked"},
         r"L = -\sum_{i,t} m_{i,t}\, w_{i,t}\, s_{i,t}"),
        ({"divergence_weight": -0.04, "beta_from": "constant"},
         r"L = \sum_{i,t} w_{i,t}\, \left(s_{i,t} - 0.04\, d_{i,t}\right)"),
        ({"factor": 0.5}, r"L = 0.5\, \sum_{i,t} w_{i,t}\, \left(s_{i,t} + \beta\, d_{i,t}\right)"),
        ({"aggregation": "per-token"}, r"L_{i,t} = s_{i,t} + \beta\, d_{i,t}"),
    ],
)  # fmt: skip
def test_terms_of_a_loss(changes, loss):
    assert written({**SEED, **changes})["loss"] == loss


def test_an_unknown_divergence_is_called_unknown():
    point = {axis: value for axis, value in SEED.items() if axis != "divergence"}
    assert "unknown" in written(point)["loss"]
    assert "divergence" not in written(point)


def test_the_constant_of_an_aggregation():
    """The sum is divided by 1/factor = 512."""
    lines = written({**SEED, "aggregation": "constant", "factor": 1 / 512})
    assert lines["weight of a slot"] == r"w_{i,t} = \frac{1}{C},\quad C = 512"
    assert "0.00" not in lines["loss"]


def test_a_ratio_to_the_reference():
    assert (
        r"\pi_{\text{ref}}" in written({**SEED, "ratio": "token", "ratio_to": "reference"})["ratio"]
    )


def test_a_log_prob_surrogate_has_no_ratio():
    assert "ratio" not in written({**SEED, "surrogate": "log-prob"})


def test_bounds_of_a_geometric_mean_are_those_of_its_ratio():
    point = {**SEED, "surrogate": "unclipped", "level": "geometric-of-clipped",
             "clip_convention": "log"}  # fmt: skip
    assert r"a = e^{" in written(point)["clip bounds"]


@pytest.mark.parametrize(
    ("point", "lines"),
    [
        ({"baseline": "none", "scale": "none"}, {"advantage": "A_i = r_i"}),
        ({"baseline": "leave-one-out", "scale": "none", "sign": "inverted", "factor": 2.0},
         {"advantage": r"A_i = -2\, \left(r_i - b_i\right)",
          "baseline": r"b_i = \frac{1}{G - 1} \sum_{j \ne i} r_j"}),
        ({"baseline": "group-mean", "scale": "sample-std", "eps": 1e-4, "eps_place": "std + eps"},
         {"advantage": r"A_i = \frac{r_i - b_i}{\sigma_i + \varepsilon}",
          "baseline": r"b_i = \frac{1}{G} \sum_j r_j",
          "scale": r"\sigma_i = \sqrt{\frac{1}{G - 1} \sum_j (r_j - \bar{r})^2}",
          "constants": r"\varepsilon = 0.0001"}),
        ({"divergence": "k1", "place": "reward", "reduction": "sum", "divergence_weight": -1.0},
         {"reward": r"r'_{i} = r_{i} - \beta\, \sum_{t} d_{i,t}",
          "divergence": r"d = \log\frac{\pi_\theta}{\pi_{\text{ref}}}"}),
        ({"log_probs": "unnormalised"}, {"log-probability": r"\log\pi_\theta(v) = z_v"}),
        ({}, {}),
        ({"divergence": "none"}, {}),
    ],
)  # fmt: skip
def test_other_roles(point, lines):
    assert written(point) == lines


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_every_published_objective_is_rendered(name):
    objective: Objective = OBJECTIVES[name].objective
    lines = equations(point_of(objective, 512))
    assert lines
    for line in lines:
        assert mathml(line.latex)
