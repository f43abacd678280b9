"""What a script is said to optimise agrees with plain loops over its own functions.

`plain` differentiates the loss by the logits; the defence asks for slopes along log-probs. No
code is shared. Expected names come from the definition of each recipe or fault.
"""

from math import comb, sqrt

import pytest
from tests.defence import plain, scripts

from rlproof.defence.script import defend_script
from rlproof.read.script import read

CASES = {
    "grpo": (scripts.GRPO, "list"),
    "dr_grpo": (scripts.DR_GRPO, "numpy"),
    "rloo": (scripts.RLOO, "torch"),
    "inverted": (scripts.INVERTED, "list"),
    "log-ratio": (scripts.LOG_RATIO, "list"),
    "batch": (scripts.BATCH_AND_PADDING, "list"),
}
SINGLE = [(v,) for v in range(4)]
ENDING = [0.2, 0.0, -0.3]
REF2 = [0.0, 0.8, -0.3, 0.2]


@pytest.fixture(scope="module")
def defended(tmp_path_factory):
    found = {}

    def of(name):
        text, kind = CASES[name]
        if kind == "torch":
            pytest.importorskip("torch")
        if name not in found:
            path = tmp_path_factory.mktemp("defence") / f"{name}.py"
            path.write_text(text, encoding="utf-8")
            found[name] = defend_script(read(str(path)), seconds=60)
        return found[name], plain.load(text), kind

    return of


def facts(defence):
    (one,) = defence.optimised
    return one.facts


def binary(theta=plain.P4):
    return dict(zip(SINGLE, plain.BINARY, strict=True))


def ending_rewards():
    return {s: float(0 in s) for s in plain.completions(3, 2, 3)}


def std_weight(size, p):
    """E√(K(G−K))/(G·p(1−p)), term by term."""
    return sum(
        comb(size, k) * p**k * (1 - p) ** (size - k) * sqrt(k * (size - k)) / size
        for k in range(size + 1)
    ) / (p * (1 - p))


P = 0.4550520  # π of the first arm of P4


@pytest.mark.parametrize(
    ("name", "objective", "factor", "meant"),
    [
        # population std, mean over the rows
        ("grpo", "arcsine", "1", lambda g: std_weight(g, P)),
        # rows summed over L_max = 5, group mean without std
        ("dr_grpo", "expected-reward", "0.2·(G − 1)/G", lambda g: 0.2 * (g - 1) / g),
        # the mean of the others: unbiased
        ("rloo", "expected-reward", "1", lambda g: 1.0),
        ("inverted", "arcsine", "−1", lambda g: -std_weight(g, P)),
        # one prompt is the whole batch: N = G
        ("batch", "expected-reward", "(G − 1)/G", lambda g: (g - 1) / g),
    ],
)
def test_the_objective_is_the_one_enumerated(defended, name, objective, factor, meant):
    defence, script, kind = defended(name)
    found = facts(defence)
    assert found["objective"] == objective
    assert found["factor"] == factor
    assert found["direction"] == ("down" if factor.startswith("−") else "up")
    gradient = plain.value_gradient(plain.P4, binary())
    for size in (2, 3):
        step = plain.step(script, kind, plain.P4, binary(), size)
        assert plain.degrees(step, gradient) == pytest.approx(180 * (meant(size) < 0), abs=1e-3)
        assert plain.scale(step, gradient) == pytest.approx(meant(size), rel=2e-5)


def test_a_ratio_of_log_probs_descends_with_a_weight_of_no_known_form(defended):
    """∂(new/old)/∂new = 1/log π < 0: each token's pull is divided by its log-prob."""
    defence, script, kind = defended("log-ratio")
    found = facts(defence)
    assert found["direction"] == "down"
    assert found["objective"] is None
    assert found["residual"] > 0.05
    for p, weight in zip((0.1, 0.5, 0.9), (found["weight_4"][i] for i in (1, 3, 5)), strict=True):
        theta = [plain.math.log(p), plain.math.log(1 - p)]
        rewards = {(0,): 1.0, (1,): 0.0}
        step = plain.step(script, kind, theta, rewards, 4)
        gradient = plain.value_gradient(theta, rewards)
        assert plain.scale(step, gradient) == pytest.approx(weight, rel=1e-4)
    text = " ".join(defence.optimised[0].says)
    assert "DESCENDS" in text
    assert "residual" in text


@pytest.mark.parametrize("name", list(CASES))
def test_the_angle_on_graded_rewards(defended, name):
    """P4 with four reward values and G = 4: 256 groups."""
    defence, script, kind = defended(name)
    rewards = dict(zip(SINGLE, plain.GRADED, strict=True))
    step = plain.step(script, kind, plain.P4, rewards, 4)
    gradient = plain.value_gradient(plain.P4, rewards)
    found = facts(defence)
    assert found["degrees_from_gradient"] == pytest.approx(plain.degrees(step, gradient), abs=1e-3)
    assert found["scale_along_gradient"] == pytest.approx(plain.scale(step, gradient), rel=1e-4)


@pytest.mark.parametrize("name", list(CASES))
def test_the_angle_where_the_policy_chooses_its_length(defended, name):
    """Three tokens, the last ends, at most three of them: 15 completions, 225 pairs."""
    defence, script, kind = defended(name)
    step = plain.step(script, kind, ENDING, ending_rewards(), 2)
    gradient = plain.value_gradient(ENDING, ending_rewards())
    assert facts(defence)["degrees_when_stopping"] == pytest.approx(
        plain.degrees(step, gradient), abs=2e-3
    )


def test_lengths_and_padding(defended):
    """Only the constant keeps ∇V (D1); counted padding trains token 0 (D6)."""
    assert facts(defended("dr_grpo")[0])["degrees_when_stopping"] < 1e-2
    assert facts(defended("grpo")[0])["degrees_when_stopping"] > 1
    assert facts(defended("grpo")[0])["by_padding"] < 1e-9
    assert facts(defended("batch")[0])["by_padding"] > 0.1
    text = " ".join(defended("batch")[0].optimised[0].says)
    assert "trains padding" in text


def test_a_batch_mean_reaches_across_prompts(defended):
    """Two prompts of four: (N − 1)/N = 7/8 with the batch mean, (G − 1)/G = 3/4 otherwise."""
    parts = {p.key: p for p in defended("batch")[0].parts}
    assert parts["advantage"].facts["weight_beside"] == pytest.approx((7 / 8,) * 3, rel=1e-9)
    parts = {p.key: p for p in defended("dr_grpo")[0].parts}
    assert parts["advantage"].facts["weight_beside"] == pytest.approx((3 / 4,) * 3, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "follows", "beta"),
    [("grpo", "KL(ref‖π)", 0.04), ("rloo", "KL(π‖ref)", 0.1), ("inverted", "KL(ref‖π)", 0.04)],
)
def test_the_pull_is_the_gradient_of_the_kl_that_is_named(defended, name, follows, beta):
    defence, script, kind = defended(name)
    assert facts(defence)["pulls_along"] == follows
    assert facts(defence)["pull_factor"] == pytest.approx(1.0, abs=1e-4)
    step = plain.step(script, kind, plain.P4, binary(), 1, ref=REF2, flat=True)

    def divergence(theta):
        new, ref = plain.log_softmax(theta), plain.log_softmax(REF2)
        over, under = (new, ref) if follows == "KL(π‖ref)" else (ref, new)
        return sum(plain.math.exp(a) * (a - b) for a, b in zip(over, under, strict=True))

    gradient = plain.differences(divergence, plain.P4)
    assert step == pytest.approx([-beta * g for g in gradient], abs=1e-8)


def test_the_statement_says_it(defended):
    says = {name: " ".join(defended(name)[0].optimised[0].says) for name in CASES if name != "rloo"}
    assert "ascends Σ_prompts 2·arcsin√p" in says["grpo"]
    assert "with your G = 8 a weight of 1.856 at p = .5" in says["grpo"]
    assert "ascends the expected reward, times 0.2·(G − 1)/G" in says["dr_grpo"]
    assert "DESCENDS Σ_prompts 2·arcsin√p" in says["inverted"]
    assert "pulls to the reference by β = 0.04 times ∇KL(ref‖π)" in says["grpo"]


def test_rloo_says_it(defended):
    pytest.importorskip("torch")
    text = " ".join(defended("rloo")[0].optimised[0].says)
    assert "ascends the expected reward: with G = 8 the expected step is 1·∇V" in text
    assert "β = 0.1 times ∇KL(π‖ref)" in text


def test_the_recipe_beside_it(defended):
    declared = defended("dr_grpo")[0].compared[0]
    assert (declared.recipe, declared.declared) == ("dr_grpo", True)
    assert "no coordinate contradicts it" in declared.says
    assert defended("grpo")[0].compared[0].recipe == "grpo"


def test_objections_name_the_claims_they_contradict(defended):
    codes = {o.finding.code: o.claims for o in defended("log-ratio")[0].objections}
    assert codes["SUR001"] == ("C1",)
    codes = {o.finding.code: o.claims for o in defended("batch")[0].objections}
    assert "D6" in codes["MSK001"]
    assert "A18" in codes["ADV001"]
