"""The fused loss against autograd through the logits, and against differences of the loss."""

import pytest

torch = pytest.importorskip("torch")

from tests.space.test_objective_points import POINTS  # noqa: E402
from tests.support.sampling import one_in  # noqa: E402
from tests.train.fused.cases import case, gap, outcome  # noqa: E402

from rlproof.space.entropy import Entropy  # noqa: E402
from rlproof.space.objective import Divergence, Objective  # noqa: E402
from rlproof.space.published import OBJECTIVES  # noqa: E402
from rlproof.train.fused import chunk, fused_loss, passes  # noqa: E402
from rlproof.train.fused import head as of_head  # noqa: E402
from rlproof.train.fused.local import Local  # noqa: E402

TEMPERATURES = (1.0, 0.7)
BONUSES = (0.0, 0.03)
EXACT, SINGLE = 1e-12, 1e-6
RICH = Objective(
    divergence=Divergence("loss"), entropy=Entropy(0.03), temperature=0.7, aggregation="token-mean"
)


def variant(name, temperature, bonus):
    entropy = Entropy(bonus, top_share=OBJECTIVES[name].objective.entropy.top_share)
    return OBJECTIVES[name].objective.but(temperature=temperature, entropy=entropy)


@pytest.mark.parametrize("bonus", BONUSES)
@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("name", one_in(3, OBJECTIVES))
def test_every_published_objective(name, temperature, bonus):
    objective = variant(name, temperature, bonus)
    made = case(temperature=temperature)
    double = outcome(made, objective, entropy=True)
    assert gap(double, outcome(made, objective, "plain", entropy=True)) < EXACT


@pytest.mark.parametrize("name", one_in(3, OBJECTIVES))
def test_every_published_objective_in_single_precision(name):
    """Of log-probs of some nats. The larger they are, the more both forms lose to rounding: then
    the fused form is as near to float64 as the other one.

    VESPO's weight ρᵏ multiplies the rounding of a sum over the row by k = 3.
    """
    for temperature, bonus, scale in ((1.0, 0.0, 0.4), (0.7, 0.03, 0.4), (1.0, 0.03, 4.0)):
        objective = variant(name, temperature, bonus)
        made = case(temperature=temperature, scale=scale).to(torch.float32)
        single, plain, exact = (
            {key: value.double() for key, value in found.items() if "metric" not in key}
            for found in (
                outcome(made, objective),
                outcome(made, objective, "plain"),
                outcome(made.to(torch.float64), objective, "plain"),
            )
        )
        if scale < 1:
            assert gap(single, plain) < (3 * SINGLE if name == "vespo" else SINGLE)
        assert gap(single, exact) < max(2 * SINGLE, 1.5 * gap(plain, exact))


@pytest.mark.parametrize("name", one_in(3, POINTS))
def test_every_point_of_the_space(name):
    for changes in ({}, {"old": None}):
        made = case(seed=3, **changes)
        found = outcome(made, POINTS[name])
        assert gap(found, outcome(made, POINTS[name], "plain")) < EXACT
    per_token = torch.randn(5, 7, dtype=torch.float64)
    made = case(seed=4, advantages=per_token)
    assert gap(outcome(made, POINTS[name]), outcome(made, POINTS[name], "plain")) < EXACT


@pytest.mark.parametrize(("dtype", "digits"), [(torch.bfloat16, 2**-8), (torch.float16, 2**-11)])
@pytest.mark.parametrize("name", ["grpo", "gspo", "cispo", "rloo"])
def test_half_precision_inputs(name, dtype, digits):
    """Sums are float32: loss and log-probs as in float64 of the same numbers, gradients rounded
    once to the type of the input."""
    objective = variant(name, 0.7, 0.03)
    made = case(temperature=0.7, spread=0.5).to(dtype)
    found = outcome(made, objective)
    exact = outcome(made.to(torch.float64), objective, "plain")
    assert found["loss"].dtype == found["logps"].dtype == torch.float32
    for name in ("loss", "logps"):
        assert gap({name: found[name]}, {name: exact[name]}) < 3e-6
    for name in ("hidden", "weight", "bias"):
        assert found[name].dtype == dtype
        assert gap({name: found[name].double()}, {name: exact[name]}) < 1.01 * digits


@pytest.mark.parametrize(
    "objective", [RICH, RICH.but(ratio="sequence-mean", surrogate="soft-gate")]
)
def test_against_differences_of_the_loss(objective):
    """(L(x + εu) − L(x − εu))/2ε along random directions u; nothing of autograd is used."""
    made, far = case(spread=0.05, temperature=0.7), 1e-6
    found = outcome(made, objective)
    torch.manual_seed(1)
    for name in ("hidden", "weight", "bias"):
        start, values = getattr(made, name), []
        way = torch.randn_like(start)
        for step in (far, -far):
            setattr(made, name, start + step * way)
            with torch.no_grad():
                values.append(
                    fused_loss(
                        made.hidden, made.weight, made.tokens, made.batch, objective, bias=made.bias
                    ).loss
                )
        setattr(made, name, start)
        slope = ((values[0] - values[1]) / (2 * far)).item()
        assert slope == pytest.approx((found[name] * way).sum().item(), rel=1e-7)


def without_the_token(p_CV, tokens_C):
    return p_CV


def half_the_bonus(p_CV, tokens_C, slopes_C, bonus_C, entropy_C):
    return chunk.with_bonus(p_CV, tokens_C, slopes_C, bonus_C / 2, entropy_C)


PLANTS = {
    "without the token": (passes, "without_bonus", without_the_token, RICH.but(entropy=Entropy())),
    "half the bonus": (passes, "with_bonus", half_the_bonus, RICH),
    "slopes of another sign": (Local, "slopes", lambda *_: -_[2], RICH),
    "rows not put back": (passes, "alive_first", lambda p, alive: alive.nonzero()[:, 0], RICH),
    "one pass for rows": (of_head, "token_local", lambda *_: True, OBJECTIVES["gspo"].objective),
}


@pytest.mark.parametrize("name", PLANTS)
def test_the_comparison_can_fail(name, monkeypatch):
    place, function, planted, objective = PLANTS[name]
    if name == "rows not put back":
        objective = objective.but(divergence=Divergence(), entropy=Entropy())
    made = case(temperature=objective.temperature)
    right = outcome(made, objective, "plain")
    assert gap(outcome(made, objective), right) < EXACT
    monkeypatch.setattr(place, function, planted)
    assert gap(outcome(made, objective), right) > 1e-4
