"""Every value of every axis has a formula, and the formulas say what the code computes."""

import math

import numpy as np
import pytest
from tests.report.reading import Read, value_of

from rlproof.faults.registry import catalogue
from rlproof.judge.axes import LOSS_AXES, RATIO_WEIGHTED, is_published, values
from rlproof.judge.points import point_of
from rlproof.report.formulas import AXES_OF_OBJECTIVE, FORMS, form, has_form, number
from rlproof.report.html.mathml import mathml
from rlproof.space import divergences, surrogates
from rlproof.space.objective import Objective
from rlproof.space.surrogates import Clip
from rlproof.space.validity import ALLOWED

PLANTS = {f"{f.code} {p.value}": p for f in catalogue().values() for p in f.plants}
AXES = (*LOSS_AXES, "scale")


@pytest.mark.parametrize(
    ("axis", "value"), [(axis, value) for axis in AXES for value in values(axis)]
)
def test_every_value_that_identification_can_name_is_rendered(axis, value):
    assert str(mathml(form(axis, value))).startswith("<math")


@pytest.mark.parametrize(("axis", "value"), [(a, v) for a in ALLOWED for v in ALLOWED[a]])
def test_every_value_of_an_objective_is_rendered(axis, value):
    assert mathml(form(AXES_OF_OBJECTIVE.get(axis, axis), value))


@pytest.mark.parametrize("code", sorted(PLANTS))
def test_every_planted_value_and_its_repair_are_rendered(code):
    plant = PLANTS[code]
    assert form(plant.axis, plant.value) != form(plant.axis, plant.instead)
    assert mathml(form(plant.axis, plant.value))


@pytest.mark.parametrize("estimator", sorted(divergences.ESTIMATORS))
@pytest.mark.parametrize("gradient", divergences.GRADIENTS)
def test_every_estimator_with_every_gradient_is_rendered(estimator, gradient):
    kl = Objective().divergence
    kl = type(kl)(place="loss", estimator=estimator, gradient=gradient)
    named = point_of(Objective(divergence=kl))["divergence"]
    assert mathml(form("divergence", named))


@pytest.mark.parametrize("name", sorted(RATIO_WEIGHTED))
def test_ratio_weighted_divergences_are_rendered(name):
    assert mathml(form("divergence", name))


@pytest.mark.parametrize(("axis", "value"), [(a, v) for a in FORMS for v in FORMS[a]])
def test_no_form_is_rendered_as_source_text(axis, value):
    text = "".join(Read(str(mathml(form(axis, value)))).math)
    assert text
    assert not set("\\&$_^#%~") & set(text)


def test_an_unknown_value_has_no_form():
    assert not has_form("ratio", "no such")
    assert not has_form("no such", "token")
    with pytest.raises(KeyError, match="surrogate = 'no such' has no formula"):
        form("surrogate", "no such")
    with pytest.raises(KeyError, match="k9-straight-through"):
        form("divergence", "k9-straight-through")


def test_a_ratio_to_the_reference_says_so():
    assert "ref" in form("ratio", "token", old=r"\reference")
    assert "old" not in form("level", "sequence-mean", old=r"\reference")


@pytest.mark.parametrize(
    ("value", "latex"),
    [(0.2, "0.2"), (1e-6, r"1 \cdot 10^{-6}"), (2.5e7, r"2.5 \cdot 10^{7}"),
     (math.inf, r"\infty"), (-math.inf, r"-\infty"), (math.nan, r"\text{NaN}"), (3.0, "3")],
)  # fmt: skip
def test_numbers(value, latex):
    assert number(value) == latex


# The formulas against the code, at these probabilities: π_θ, π_old, π_ref.
CASES = [(0.5, 0.25, 0.4), (0.3, 0.29, 0.5), (0.1, 0.4, 0.05), (0.9, 0.3, 0.9), (0.62, 0.5, 0.1)]
WITHOUT_NUMBER = {"trust-region-kl", "score-trust-region-kl"}  # KL₂ is a name, not a formula


def at(new, old, ref, **more):
    return {"πθ": new, "πold": old, "πref": ref, **more}


@pytest.mark.parametrize("name", sorted(values("ratio")))
@pytest.mark.parametrize("case", CASES)
def test_ratio_forms_have_the_value_of_the_code(name, case):
    new, old, _ = case
    expected = values("ratio")[name](np.array([math.log(new)]), np.array([math.log(old)]))[0][0]
    latex = form("ratio", name).removesuffix(" = 1")
    assert value_of(mathml(latex), at(*case)) == pytest.approx(expected)


@pytest.mark.parametrize("name", sorted(set(values("divergence")) - {"k1-score-weighted"}))
@pytest.mark.parametrize("case", CASES)
def test_divergence_forms_have_the_value_of_the_code(name, case):
    new, _, ref = case
    formula = values("divergence")[name]
    expected = formula(np.array([math.log(new)]), np.array([math.log(ref)]))[0][0]
    assert value_of(mathml(form("divergence", name)), at(*case)) == pytest.approx(expected)


@pytest.mark.parametrize("name", sorted(set(values("surrogate")) - WITHOUT_NUMBER))
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("adv", [1.5, -0.7])
def test_surrogate_forms_have_the_value_of_the_code(name, case, adv):
    new, old, _ = case
    clip = Clip(0.2, 0.28, 1.6)
    rho = np.array([new / old])
    expected = values("surrogate")[name](
        rho, rho, np.array([math.log(new)]), np.array([adv]), clip
    )[0][0]
    names = at(
        *case, ρ=new / old, A=adv, a=0.8, b=1.28, c=1.6, εlow=0.2, εhigh=0.28,
        εA=0.28 if adv > 0 else 0.2, τ=1.0 if adv > 0 else 1.05,
        k=2.0 if adv > 0 else 3.0, λ=3.0 if adv > 0 else 2.0,
    )  # fmt: skip
    assert value_of(mathml(form("surrogate", name)), names) == pytest.approx(expected)


def test_the_reader_of_formulas_notices_a_wrong_one():
    """One case where max and min differ: ρ = 2, A = 1, b = 1.28."""
    names = {"ρ": 2.0, "A": 1.0, "a": 0.8, "b": 1.28}
    assert value_of(mathml(form("surrogate", "min-clip")), names) == 1.28
    assert value_of(mathml(form("surrogate", "max-clip")), names) == 2.0
    assert is_published("surrogate", "min-clip")
    assert "min-clip" in surrogates.PUBLISHED
