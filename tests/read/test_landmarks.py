"""Where each step of an objective is written. Expected lines are read off the scripts shown."""

import ast

import pytest

from rlproof.read.landmarks import (
    advantages_landmarks,
    calls_in,
    definition,
    is_width,
    loss_landmarks,
    place,
)
from rlproof.read.roles import recognise

LOOP = """\
def loss(logp, old_logp, ref_logp, adv, mask, clip_eps=0.2, beta=0.04):
    total, count = 0.0, 0
    for i, a in enumerate(adv):
        for t in range(len(mask[i])):
            if not mask[i][t]:
                continue
            ratio = math.exp(logp[i][t] - old_logp[i][t])
            clipped = min(max(ratio, 1 - clip_eps), 1 + clip_eps)
            surrogate = min(ratio * a, clipped * a)
            gap = ref_logp[i][t] - logp[i][t]
            kl = math.exp(gap) - gap - 1
            total += -surrogate + beta * kl
            count += 1
    return total / count
"""
NUMPY = """\
def loss(logp, old_logp, ref_logp, adv, mask, clip_eps=0.2, beta=0.04):
    ratio = np.exp(logp - old_logp)
    clipped = np.clip(ratio, 1 - clip_eps, 1 + clip_eps)
    surrogate = np.minimum(ratio * adv[:, None], clipped * adv[:, None])
    gap = ref_logp - logp
    kl = np.exp(gap) - gap - 1
    per_token = -surrogate + beta * kl
    return (per_token * mask).sum() / mask.sum()
"""
TORCH = """\
def loss(logp, old_logp, ref_logp, adv, mask, eps_low=0.2, eps_high=0.28, beta=0.04):
    log_ratio = logp - old_logp
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - eps_low, 1 + eps_high)
    pg = -torch.min(ratio * adv.unsqueeze(1), clipped * adv.unsqueeze(1))
    delta = ref_logp - logp
    kl = delta.exp() - delta - 1
    per_token = pg + beta * kl
    per_row = (per_token * mask).sum(1) / mask.sum(1)
    return per_row.mean()
"""
ONE_LINE = """\
def loss(logp, old_logp, adv, mask, eps=0.2):
    return -(np.minimum(np.exp(logp - old_logp) * adv,
                        np.clip(np.exp(logp - old_logp), 1 - eps, 1 + eps) * adv) * mask).sum()
"""
LARGER_LOSS = """\
def loss(logp, old_logp, adv, mask, eps=0.2):
    ratio = (logp - old_logp).exp()
    pg1 = -adv * ratio
    pg2 = -adv * torch.clamp(ratio, 1 - eps, 1 + eps)
    pg = torch.max(pg1, pg2)
    return (pg * mask).sum() / mask.sum()
"""
SEPARATE = """\
def loss(logp, old_logp, ref_logp, adv, mask, eps=0.2, beta=0.1):
    ratio = torch.exp(logp - old_logp)
    s = torch.min(ratio * adv, torch.clamp(ratio, 1 - eps, 1 + eps) * adv)
    policy = -(s * mask).sum() / mask.sum()
    gap = ref_logp - logp
    penalty = ((gap.exp() - gap - 1) * mask).sum() / logp.shape[1]
    return policy + beta * penalty
"""


def at(**keys):
    """Landmark to line, or to first and last line."""
    return keys


STYLES = {
    "loop": (
        LOOP,
        at(ratio=7, clip=8, surrogate=9, divergence=10, sign=12, beta=12, slots=4, reduce=14),
    ),
    "numpy": (
        NUMPY,
        at(ratio=2, clip=3, surrogate=4, divergence=5, sign=7, beta=7, slots=8, reduce=8),
    ),
    "torch": (TORCH, at(ratio=2, clip=4, surrogate=5, sign=5, divergence=6, beta=8, reduce=10)),
    "one line": (ONE_LINE, at(ratio=2, clip=2, surrogate=2, sign=2, slots=2, reduce=2)),
    "larger loss": (LARGER_LOSS, at(ratio=2, clip=4, surrogate=5, reduce=6)),
    "separate": (SEPARATE, at(ratio=2, surrogate=3, sign=4, reduce=4, penalty=6, width=6, beta=7)),
}


def target(text):
    return recognise(ast.parse(text))[0]


@pytest.mark.parametrize(("text", "lines"), list(STYLES.values()), ids=list(STYLES))
def test_lines_of_a_loss(text, lines):
    found = loss_landmarks(target(text))
    assert {key: found[key].line for key in lines} == lines


def test_span_is_that_of_the_statement():
    spot = loss_landmarks(target(LOOP))["surrogate"]
    line = LOOP.splitlines()[8]
    assert line[spot.col : spot.end_col] == "surrogate = min(ratio * a, clipped * a)"
    loop = loss_landmarks(target(LOOP))["slots"]
    assert (loop.line, loop.end_line) == (4, 13)  # the whole inner loop


@pytest.mark.parametrize("key", ["divergence", "beta", "penalty"])
def test_step_that_is_not_there_falls_back_to_the_def_line(key):
    spot = loss_landmarks(target(ONE_LINE))[key]
    assert (spot.line, spot.col, spot.end_col) == (1, 0, len("def loss"))


def test_no_landmark_without_arithmetic():
    text = "def loss(logp, old_logp, adv):\n    return helper(logp, old_logp, adv)\n"
    assert {spot.line for spot in loss_landmarks(target(text)).values()} == {1}


def test_choice_by_where():
    """No `min` is called: the first product of ratio and advantage stands for the surrogate."""
    text = LARGER_LOSS.replace("torch.max(pg1, pg2)", "torch.where(pg1 > pg2, pg1, pg2)")
    assert loss_landmarks(target(text))["surrogate"].line == 3


APPENDED = """\
def loss(logp, old_logp, adv, mask, eps=0.2):
    terms = []
    for i, a in enumerate(adv):
        for t in range(len(mask[i])):
            ratio = math.exp(logp[i][t] - old_logp[i][t])
            clipped = min(max(ratio, 1 - eps), 1 + eps)
            terms.append(-min(ratio * a, clipped * a))
    return sum(terms) / len(terms)
"""


def test_list_of_terms():
    found = loss_landmarks(target(APPENDED))
    assert (found["ratio"].line, found["clip"].line, found["surrogate"].line) == (5, 6, 7)


def test_list_of_terms_is_reduced_where_it_is_summed():
    assert loss_landmarks(target(APPENDED))["reduce"].line == 8


OPTIONAL = """\
def loss(logp, old_logp, ref_logp, adv, mask, eps=0.2, kl_coef=None):
    ratio = (logp - old_logp).exp()
    s = torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv)
    if use_kl:
        gap = ref_logp - logp
        kl = gap.exp() - gap - 1
    else:
        kl = 0.0
    total = s - 0.04 * kl
    return -(total * mask).sum() / mask.sum()
"""


def test_divergence_inside_a_condition():
    assert loss_landmarks(target(OPTIONAL))["divergence"].line == 5


def test_constant_coefficient_of_an_optional_divergence():
    text = OPTIONAL.replace(", kl_coef=None", "")
    assert loss_landmarks(target(text))["beta"].line == 9


ADVANTAGES = {
    "list": (
        """\
def advantages(rewards, group_size, eps=1e-6):
    out = []
    for s in range(0, len(rewards), group_size):
        group = rewards[s : s + group_size]
        mean = sum(group) / len(group)
        std = (sum((r - mean) ** 2 for r in group) / len(group)) ** 0.5
        out += [(r - mean) / (std + eps) for r in group]
    return out
""",
        at(statistics=(3, 8), division=(7, 7), difference=(7, 7), result=(8, 8), function=(1, 1)),
    ),
    "numpy": (
        '''\
def advantages(rewards, group_size):
    """Doc."""
    r = np.asarray(rewards).reshape(-1, group_size)
    mean, std = r.mean(1, keepdims=True), r.std(1, keepdims=True)
    if std < 1e-8:
        return r * 0
    centred = r - mean
    return centred / std
''',
        at(statistics=(3, 8), guard=(5, 5), difference=(7, 7), division=(8, 8), result=(8, 8)),
    ),
    "one line": (
        "def advantages(rewards):\n    return (rewards - rewards.mean()) / rewards.std()\n",
        at(statistics=(2, 2), division=(2, 2), difference=(2, 2), result=(2, 2)),
    ),
    "no division": (
        "def advantages(rewards):\n    centred = rewards - rewards.mean()\n    return centred\n",
        at(difference=(2, 2), division=(3, 3), guard=(3, 3)),  # fall back to the result
    ),
}


@pytest.mark.parametrize(("text", "spans"), list(ADVANTAGES.values()), ids=list(ADVANTAGES))
def test_spans_of_advantages(text, spans):
    found = advantages_landmarks(target(text))
    assert {key: (found[key].line, found[key].end_line) for key in spans} == spans


def test_place_and_definition():
    node = ast.parse("x = (1 +\n     2)").body[0]
    spot = place("f", node)
    assert (spot.line, spot.end_line, spot.col, spot.end_col) == (1, 2, 0, 7)
    assert definition(target(ONE_LINE)).function == "loss"


@pytest.mark.parametrize(
    ("expression", "width"),
    [("x.shape[1]", True), ("x.shape[-1]", True), ("x.size(1)", True),
     ("x.shape[0]", False), ("x.size(0)", False), ("x.size()", False), ("len(x)", False)],
)  # fmt: skip
def test_is_width(expression, width):
    assert is_width(ast.parse(expression, mode="eval").body) is width


def test_calls_in_source_order():
    text = ONE_LINE.replace("np.minimum", "g").replace("np.clip", "g")
    assert [node.lineno for node in calls_in(target(text), "g")] == [2, 3]


def test_a_question_about_the_coefficient_is_not_its_use():
    text = OPTIONAL.replace("if use_kl", "if kl_coef is not None").replace("0.04 *", "kl_coef *")
    assert loss_landmarks(target(text))["beta"].line == 9


HELPED = """\
def loss(logp, old_logp, ref_logp, adv, mask, clip_eps=0.2, beta=0.04):
    ratio = np.exp(logp - old_logp)
    terms = np.minimum(ratio * adv, np.clip(ratio, 1 - clip_eps, 1 + clip_eps) * adv)
    penalty = divergence(logp, {other})
    return -((terms - beta * penalty) * mask).sum() / mask.sum()
"""


def test_what_meets_in_a_helper_is_where_the_helper_is_called():
    found = loss_landmarks(target(HELPED.format(other="ref_logp")))
    assert (found["divergence"].line, found["ratio"].line) == (4, 2)
    wrong = loss_landmarks(target(HELPED.format(other="old_logp")))
    assert (wrong["old_penalty"].line, wrong["ratio"].line) == (4, 2)


def test_a_function_inside_shows_its_own_lines():
    inside = """\
def loss(logp, old_logp, ref_logp, adv, mask, clip_eps=0.2, beta=0.04):
    def divergence(one, other):
        gap = other - one
        return np.exp(gap) - gap - 1
"""
    text = inside + HELPED.format(other="ref_logp").partition("\n")[2]
    assert loss_landmarks(target(text))["divergence"].line == 3
