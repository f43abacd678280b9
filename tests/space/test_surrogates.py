"""Ratios, surrogates, divergences: tables derived by hand, slopes against finite differences."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rlproof.space import divergences, ratios, scores, surrogates
from rlproof.space.surrogates import Clip

SAME = settings(derandomize=True, deadline=None)
NUMBERS = st.floats(-3.0, 0.0)
SHIFTS = st.floats(-2.0, 2.0)
ADVANTAGES = st.floats(-2.0, 2.0)
CLIP = Clip(0.2, 0.3, 3.0)
STEP = 1e-6
NEAR = 1e-4  # of a kink: there a central difference mixes two slopes


def at(x):
    return np.array([float(x)])


def term(name, ratio, adv, clip=CLIP, new=-1.0):
    """Value and slope of a surrogate at a given ratio; the slope of exp(new − old) is itself."""
    formula = scores.ALL[name]
    value, slope = formula(at(ratio), at(ratio), at(new), at(adv), clip)
    return float(value[0]), float(slope[0])


# By hand, with bounds 0.8 and 1.3 and cap 3. "Kept" terms have value ρ·A and slope ρ·A; clipped
# ones have value bound·A and slope 0.
TABLE = [
    # A > 0: min takes the clipped term above 1.3, and the plain one below 0.8.
    ("min-clip", 0.5, 2.0, 1.0, 1.0),
    ("min-clip", 1.0, 2.0, 2.0, 2.0),
    ("min-clip", 1.5, 2.0, 2.6, 0.0),
    # A < 0: min takes the clipped term below 0.8, and the plain one above 1.3.
    ("min-clip", 0.5, -2.0, -1.6, 0.0),
    ("min-clip", 1.0, -2.0, -2.0, -2.0),
    ("min-clip", 1.5, -2.0, -3.0, -3.0),
    ("min-clip", 5.0, 0.0, 0.0, 0.0),
    # Dual clip differs for A < 0 and ρ > 3 only: 3·A, flat.
    ("dual-clip", 5.0, -2.0, -6.0, 0.0),
    ("dual-clip", 2.5, -2.0, -5.0, -5.0),
    ("dual-clip", 0.5, -2.0, -1.6, 0.0),
    ("dual-clip", 5.0, 2.0, 2.6, 0.0),
    # Two-sided: for A < 0 the unclipped branch ends at ρ = 3: 3·A, flat.
    ("two-sided", 5.0, -2.0, -6.0, 0.0),
    ("two-sided", 2.5, -2.0, -5.0, -5.0),
    ("two-sided", 5.0, 2.0, 2.6, 0.0),
    ("unclipped", 5.0, -2.0, -10.0, -10.0),
    # log-prob: A·log π with log π = −1, whatever the ratio; slope A.
    ("log-prob", 5.0, 2.0, -2.0, 2.0),
    # cispo: weight clip(ρ), held constant, times A·log π: slope weight·A.
    ("cispo", 1.0, 2.0, -2.0, 2.0),
    ("cispo", 5.0, 2.0, -2.6, 2.6),
    ("cispo", 0.5, -2.0, 1.6, -1.6),
    # tapered: weight 1 for A > 0 and min(ρ, 1) for A < 0.
    ("tapered", 5.0, 2.0, -2.0, 2.0),
    ("tapered", 5.0, -2.0, 2.0, -2.0),
    ("tapered", 0.5, -2.0, 1.0, -1.0),
    # gamma weight: ρ²·e^{3(1−ρ)} for A > 0; at ρ = 1 it is 1, at ρ = 2/3 it is (4/9)·e = 1.208125.
    ("gamma-weight", 1.0, 2.0, -2.0, 2.0),
    ("gamma-weight", 2 / 3, 1.0, -1.2081252571, 1.2081252571),
    # ρ³·e^{2(1−ρ)} for A < 0: at ρ = 3/2 it is (27/8)·e⁻¹ = 1.241593.
    ("gamma-weight", 1.5, -1.0, 1.2415931165, -1.2415931165),
    # With π = e⁻¹ = 0.367879: ρ = 1.5 means π_old = 0.245253, so π moved up by 0.122626, within
    # 0.3; ρ = 0.5 means 0.735759, down by 0.367879, beyond 0.2 for A < 0 only.
    ("trust-region-tv", 1.5, 2.0, 3.0, 3.0),
    ("trust-region-tv", 0.5, 2.0, 1.0, 1.0),
    ("trust-region-tv", 0.5, -2.0, 0.0, 0.0),
    ("score-trust-region-tv", 1.5, 2.0, -3.0, 3.0),
    ("score-trust-region-tv", 0.5, -2.0, 0.0, 0.0),
    # Their binary KL: 0.735759·ln 2 + 0.264241·ln(0.264241/0.632121) = 0.279513 > 0.2.
    ("trust-region-kl", 0.5, 2.0, 1.0, 1.0),
    ("trust-region-kl", 0.5, -2.0, 0.0, 0.0),
    ("score-trust-region-kl", 0.5, -2.0, 0.0, 0.0),
    # And 0.245253·ln(2/3) + 0.754747·ln(0.754747/0.632121) = 0.034377 < 0.2.
    ("trust-region-kl", 1.5, -2.0, -3.0, -3.0),
    ("score-trust-region-kl", 1.5, 2.0, -3.0, 3.0),
]


@pytest.mark.parametrize(("name", "ratio", "adv", "value", "slope"), TABLE)
def test_table(name, ratio, adv, value, slope):
    assert term(name, ratio, adv) == pytest.approx((value, slope))


def test_clip_bounds_and_slope():
    value, slope = CLIP.apply(np.array([0.5, 0.8, 1.0, 1.3, 2.0]), np.full(5, 7.0))
    assert value == pytest.approx([0.8, 0.8, 1.0, 1.3, 1.3])
    assert list(slope[[0, 2, 4]]) == [0.0, 7.0, 0.0]  # at a bound either slope is right


@given(SHIFTS, ADVANTAGES)
@SAME
def test_order_of_the_surrogates(shift, adv):
    """The minimum is below both its terms; the cap lifts it, for A < 0 only."""
    ratio = np.exp(shift)
    plain, clipped = ratio * adv, min(max(ratio, 0.8), 1.3) * adv
    least, dual = term("min-clip", ratio, adv)[0], term("dual-clip", ratio, adv)[0]
    assert least <= plain + 1e-12
    assert least <= clipped + 1e-12
    assert least <= dual + 1e-12
    assert dual == pytest.approx(least) if adv >= 0 else dual >= 3.0 * adv - 1e-12


@given(st.floats(0.81, 1.29), ADVANTAGES)
@SAME
def test_clips_are_silent_inside_the_range(ratio, adv):
    assert (
        term("min-clip", ratio, adv)
        == term("dual-clip", ratio, adv)
        == term("unclipped", ratio, adv)
    )


@pytest.mark.parametrize("ratio", list(ratios.PUBLISHED))
@pytest.mark.parametrize("name", ["unclipped", "min-clip", "dual-clip"])
@given(old=NUMBERS, shift=SHIFTS, adv=ADVANTAGES)
@SAME
def test_slope_is_a_finite_difference(ratio, name, old, shift, adv):
    assume(min(abs(np.exp(shift) - kink) for kink in (0.8, 1.3, 3.0)) > NEAR)

    def value(new):
        rho, slope = ratios.PUBLISHED[ratio](at(new), at(old))
        return scores.ALL[name](rho, slope, at(new), at(adv), CLIP)

    new = old + shift
    difference = (value(new + STEP)[0] - value(new - STEP)[0]) / (2 * STEP)
    expected = difference if ratio == "token" else at(adv)  # exp(x − stop(x)): 1, slope 1
    assert value(new)[1] == pytest.approx(expected, abs=1e-5, rel=1e-5)


@given(NUMBERS, SHIFTS)
@SAME
def test_ratio_by_hand(old, shift):
    value, slope = ratios.token(at(old + shift), at(old))
    assert value == slope == pytest.approx([np.exp(shift)], rel=1e-9)
    assert ratios.detached(at(old + shift), at(old)) == (1.0, 1.0)


# With x = log π_ref − log π_new = ln 2: k3 = 2 − ln 2 − 1, slope 1 − 2; k2 = (ln 2)²/2, slope
# −ln 2; |x| = ln 2, slope −1. ln 2 = 0.693147.
@pytest.mark.parametrize(
    ("name", "value", "slope"),
    [
        ("k3", 0.306853, -1.0),
        ("k2", 0.240227, -0.693147),
        ("absolute", 0.693147, -1.0),
        ("k3-straight-through", 0.306853, -0.693147),
    ],
)
def test_divergence_by_hand(name, value, slope):
    got = divergences.PUBLISHED[name](at(np.log(0.25)), at(np.log(0.5)))
    assert np.ravel(got) == pytest.approx([value, slope], abs=1e-6)


@pytest.mark.parametrize("name", [n for n in divergences.PUBLISHED if not n.startswith("k1")])
@given(new=NUMBERS, gap=SHIFTS)
@SAME
def test_divergence_is_not_negative_and_least_at_the_reference(name, new, gap):
    """e^x ≥ 1 + x, with equality at 0 only; a square and a modulus likewise."""
    formula = divergences.PUBLISHED[name]
    assert formula(at(new), at(new))[0] == 0.0
    assert formula(at(new), at(new))[1] == 0.0
    value, slope = formula(at(new), at(new + gap))
    assert value >= -1e-15  # rounding of e^x − x − 1 near 0
    assert value > 0.0 or abs(gap) < 1e-7
    assert slope * gap <= 0.0  # the penalty pulls towards the reference


@pytest.mark.parametrize("name", ["k3", "k2", "absolute"])
@given(new=NUMBERS, gap=SHIFTS)
@SAME
def test_divergence_slope_is_a_finite_difference(name, new, gap):
    assume(abs(gap) > NEAR)
    formula, ref = divergences.PUBLISHED[name], at(new + gap)
    difference = (formula(at(new + STEP), ref)[0] - formula(at(new - STEP), ref)[0]) / (2 * STEP)
    assert formula(at(new), ref)[1] == pytest.approx(difference, abs=1e-5)


@pytest.mark.parametrize("table", [ratios.PUBLISHED, scores.ALL, divergences.PUBLISHED])
def test_formulas_keep_the_shape(table):
    rows, ones = np.full((2, 3), -1.0), np.ones((2, 3))
    for formula in table.values():
        given = (rows, rows) if table is not scores.ALL else (ones, ones, rows, rows, CLIP)
        assert [part.shape for part in formula(*given)] == [(2, 3), (2, 3)]


def test_pick():
    one, two = (at(1), at(10)), (at(2), at(20))
    assert np.ravel(surrogates.pick(True, one, two)).tolist() == [1, 10]
    assert np.ravel(surrogates.pick(False, one, two)).tolist() == [2, 20]
