"""Clip table, divergence, lengths, invariances: measured on small scripts, known by hand."""

import pytest
from tests.defence import scripts
from tests.support.sampling import one_in

from rlproof.defence.divergence import FORWARD, REVERSE
from rlproof.defence.script import defend_script
from rlproof.read.script import read

_LOSS = '''import math


def policy_loss(new_logps, old_logps, ref_logps, advantages, mask, beta=0.1):
    """A loss to minimise."""
    total, count = 0.0, 0
    for i, adv in enumerate(advantages):
        for t in range(len(mask[i])):
            if not mask[i][t]:
                continue
            ratio = math.exp(new_logps[i][t] - old_logps[i][t])
            gap = new_logps[i][t] - ref_logps[i][t]
            surrogate = {surrogate}
            total += -surrogate + beta * {penalty}
            count += 1
    return total / count
'''
_MIN = "min(ratio * adv, min(max(ratio, 0.8), 1.2) * adv)"
_MAX = "max(ratio * adv, min(max(ratio, 0.8), 1.2) * adv)"
_CLIP = "min(max(ratio, 0.8), 1.2) * adv"
_DUAL = f"(max({_MIN}, 3 * adv) if adv < 0 else {_MIN})"
_K3 = "(math.exp(-gap) + gap - 1)"


@pytest.fixture
def parts(tmp_path):
    def of(text):
        path = tmp_path / "script.py"
        path.write_text(text, encoding="utf-8")
        defence = defend_script(read(str(path)), seconds=60)
        return {part.key: part for part in defence.parts}, defence

    return of


def loss(surrogate=_MIN, penalty=_K3):
    return _LOSS.format(surrogate=surrogate, penalty=penalty)


def zones(part):
    """(A, zone) of the rows without a gradient, of those far above too."""
    (table,) = part.tables
    return {(row[0], row[1]) for row in table.rows if row[4] == 0}


@pytest.mark.parametrize(
    ("surrogate", "flat", "says"),
    one_in(3, [
        (_MIN, {("A = +1", "above"), ("A = +1", "beyond a cap"), ("A = -1", "below")},
         "Everywhere else the slope is ρ·A"),
        (_MAX, {("A = +1", "below"), ("A = -1", "above"), ("A = -1", "beyond a cap")},
         "It gives no way back"),
        (_CLIP, {("A = +1", "above"), ("A = +1", "beyond a cap"), ("A = +1", "below"),
                 ("A = -1", "below"), ("A = -1", "above"), ("A = -1", "beyond a cap")},
         "It gives no way back"),
        (_DUAL, {("A = +1", "above"), ("A = +1", "beyond a cap"), ("A = -1", "below"),
                 ("A = -1", "beyond a cap")}, "Everywhere else"),
        ("ratio * adv", set(), "nothing is clipped away"),
        ("-ratio * adv", set(), "wrong sign"),
    ]),
)  # fmt: skip
def test_which_quadrants_have_no_gradient(parts, surrogate, flat, says):
    """Closed form: a constant branch has slope 0, ρ·A has slope ρ·A."""
    part = parts(loss(surrogate))[0]["clip"]
    assert zones(part) == flat
    assert says in " ".join(part.says)


def test_values_and_slopes_of_the_clip_table(parts):
    """min-clip at .2, by hand: value min(ρA, clip(ρ)A)."""
    (table,) = parts(loss())[0]["clip"].tables
    found = {(row[0], row[2]): row[3:5] for row in table.rows}
    assert found["A = +1", 1.0] == pytest.approx((1.0, 1.0), abs=1e-8)
    assert found["A = +1", 1.5] == pytest.approx((1.2, 0.0), abs=1e-8)
    assert found["A = -1", 1.5] == pytest.approx((-1.5, -1.5), abs=1e-8)
    assert found["A = -1", 0.48] == pytest.approx((-0.8, 0.0), abs=1e-8)


@pytest.mark.parametrize(
    ("penalty", "follows", "factor", "claim"),
    one_in(3, [
        (_K3, FORWARD, 1.0, "B4"),
        ("gap ** 2 / 2", REVERSE, 1.0, "B5"),
        ("gap ** 2", REVERSE, 2.0, "B5"),
        ("gap", "none", 0.0, "B7"),
        ("0.0 * gap", "none", 0.0, "B7"),
        (f"(-{_K3})", FORWARD, -1.0, "B4"),
        ("abs(gap)", None, 0.0, "B4"),
        ("ratio * (math.exp(-gap) + gap - 1)", REVERSE, 1.0, "B11"),
    ]),
)  # fmt: skip
def test_which_gradient_the_divergence_follows(parts, penalty, follows, factor, claim):
    """B4: k3 gives π − ref; B5: k2 gives π·(log π/ref − KL); B7: E[score] = 0; B11: ρ·k3."""
    found, defence = parts(loss(penalty=penalty))
    part = found["divergence"]
    assert part.facts["follows"] == follows
    assert part.facts["factor"] == pytest.approx(factor, abs=1e-4)
    assert claim in part.claims
    says = " ".join(defence.optimised[0].says)
    if follows is None:
        assert "follows no KL gradient" in says
    elif factor < 0:
        assert "PUSHES AWAY" in says
    elif factor:
        assert f"∇{follows}" in says


def test_off_policy_only_the_weighted_one_stays_right(parts):
    weighted = parts(loss(penalty="ratio * (math.exp(-gap) + gap - 1)"))[0]["divergence"]
    assert f"Off-policy it is ∇{REVERSE} as well" in " ".join(weighted.says)
    plain = parts(loss())[0]["divergence"]
    assert "Sampled from an older policy it is the gradient of neither" in " ".join(plain.says)


@pytest.mark.parametrize(
    ("text", "kind", "coupled", "pads"),
    [
        (scripts.GRPO, "token", True, False),
        (scripts.DR_GRPO, "token", False, False),
        (scripts.BATCH_AND_PADDING, "token", False, True),
    ],
)
def test_length_weights(parts, text, kind, coupled, pads):
    """Token mean: 1/Σ mask, here 1/15 and 1/8; a constant and B·T don't depend on the lengths."""
    facts = parts(text)[0]["lengths"].facts
    assert (facts["kind"], facts["coupled"], facts["padding_counts"]) == (kind, coupled, pads)


def test_a_sequence_mean_weighs_rows_alike(parts):
    text = scripts.DR_GRPO.replace(
        "-(terms * mask).sum() / (len(advantages) * MAX_LEN)",
        "-((terms * mask).sum(axis=1) / mask.sum(axis=1)).mean()",
    )
    facts = parts(text)[0]["lengths"].facts
    assert facts["kind"] == "row"
    assert facts["token_weights"] == pytest.approx((1 / 4, 1 / 8, 1 / 16, 1 / 32), rel=1e-6)


def test_invariances(parts):
    """A = (r − r̄)/(σ + 1e-6) ignores shifts and scales; r − r̄ grows with the scale."""
    facts = parts(scripts.GRPO)[0]["advantage"].facts
    assert facts["shift_error"] < 1e-9
    assert facts["scale_exponent"] == pytest.approx(0, abs=1e-5)
    assert facts["equal_rewards"] < 1e-6
    facts = parts(scripts.DR_GRPO)[0]["advantage"].facts
    assert facts["scale_exponent"] == pytest.approx(1, abs=1e-9)


def test_a_crash_on_equal_rewards_is_told_and_counted_as_nothing(parts):
    text = scripts.GRPO.replace("(std + eps)", "std")
    part = parts(text)[0]["advantage"]
    assert part.facts["equal_rewards"] is None
    assert part.facts["shape"] == "arcsine"
    assert "2 of the enumerated" not in " ".join(part.says)
    assert "It raises, or gives no number, on 4" in " ".join(part.says)


def test_without_a_loss_the_advantages_alone_are_defended(parts):
    text = scripts.GRPO.split("def policy_loss")[0]
    found, defence = parts(text)
    assert set(found) == {"advantage", "direction"}
    (one,) = defence.optimised
    assert one.loss is None
    assert one.facts["objective"] == "arcsine"
    assert any("no loss" in skip.reason for skip in defence.skipped)


def test_without_advantages_the_groups_mean_stands_in(parts):
    _, defence = parts("import math\n" + scripts.GRPO[scripts.GRPO.index("def policy_loss") :])
    (one,) = defence.optimised
    assert one.advantages is None
    assert one.facts["objective"] == "expected-reward"
    assert "stands in" in one.says[0]


def test_a_loss_that_hangs_is_skipped_with_its_reason(tmp_path):
    text = scripts.GRPO.replace("    total, count = 0.0, 0\n", "    while True: pass\n")
    path = tmp_path / "script.py"
    path.write_text(text, encoding="utf-8")
    defence = defend_script(read(str(path)), seconds=1)
    assert {part.key for part in defence.parts} == {"advantage", "direction"}
    assert any("did not finish" in skip.reason for skip in defence.skipped)


def test_a_penalty_in_the_reward(parts):
    """k1 in the reward has the gradient of KL(π‖ref) (B8); k3 has neither (B9)."""
    shaping = '''

def shaped_rewards(rewards, new_logps, ref_logps, mask, beta=0.1):
    """Rewards minus the divergence of each completion."""
    out = []
    for i, r in enumerate(rewards):
        kl = sum({inner} * m for a, b, m in zip(new_logps[i], ref_logps[i], mask[i]))
        out.append(r - beta * kl)
    return out
'''
    _, defence = parts(scripts.GRPO + shaping.format(inner="(a - b)"))
    in_reward = [p for p in defence.parts if p.facts.get("place") == "reward"]
    assert [p.facts["follows"] for p in in_reward] == [REVERSE]
    assert "with the penalty in the reward" in " ".join(defence.optimised[0].says)
    _, defence = parts(scripts.GRPO + shaping.format(inner="(math.exp(b - a) - (b - a) - 1)"))
    in_reward = [p for p in defence.parts if p.facts.get("place") == "reward"]
    assert [p.facts["follows"] for p in in_reward] == [None]


_FIXED = '''GROUP = {size}


def group_advantages(rewards):
    """Each reward against the others of its GROUP."""
    found = []
    for start in range(0, len(rewards), GROUP):
        group = rewards[start : start + GROUP]
        found += [r - sum(group) / len(group) for r in group]
    return found
'''


@pytest.mark.parametrize(("size", "weight"), [(2, 0.5), (4, 0.75)])
def test_a_group_size_written_into_the_function_is_found(parts, size, weight):
    """(G − 1)/G at the function's own G: eight rewards are two or four of its groups."""
    found, defence = parts(_FIXED.format(size=size))
    facts = found["advantage"].facts
    assert facts[f"weight_{size}"] == pytest.approx((weight,) * 6, rel=1e-9)
    assert "weight_8" not in facts
    assert facts["weight_beside"] == pytest.approx((weight,) * 3, rel=1e-9)
    (one,) = defence.optimised
    assert one.facts["group_size"] == size
    assert f"with your G = {size}" in " ".join(one.says)


def test_one_group_at_a_time_has_no_size_of_its_own(parts):
    found, _ = parts(_FIXED.format(size=8))
    assert {"weight_4", "weight_8"} <= set(found["advantage"].facts)


def test_a_loss_that_draws_random_numbers_has_no_expectation(parts):
    text = loss().replace("import math\n", "import math\nimport random\n")
    text = text.replace("return total / count", "return total / count + random.random()")
    found, defence = parts(text)
    assert "clip" not in found
    assert any("random numbers" in skip.reason for skip in defence.skipped)
