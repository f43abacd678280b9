"""`check` on the functions of SkyRL 0.3.0: silent, and named as the options say."""

from __future__ import annotations

import pytest

from tests.conformance import skyrl
from tests.conformance.checked import Checked, Thin
from tests.conformance.scripts import CONFIG, helpers, literal, needed_by, run_of, wheel_functions
from tests.conformance.signatures import advantage, signature
from tests.conformance.test_skyrl import losses, penalties, reductions
from tests.conformance.test_skyrl_advantages import ADVANTAGES as ESTIMATORS

pytestmark = pytest.mark.conformance
RECIPES = {
    'policy_loss_type="regular"': "grpo",
    "eps_clip_low=0.2, eps_clip_high=0.28": "dapo",
    'policy_loss_type="gspo", loss_reduction="sequence_mean"': "gspo",
    'policy_loss_type="cispo", cispo.cispo_eps_clip_low=1.0': "cispo",
    'loss_reduction="sequence_mean"': "grpo",
    'loss_reduction="seq_mean_token_sum_norm", max_seq_len=16': "dr_grpo",
}
UNKNOWN = {
    'policy_loss_type="cispo"': {"aggregation": "token-mean"},  # ratios below 1 are lifted to 1
}  # fmt: skip
"""What no point reproduces, and the coordinates that are found nevertheless."""


def thin(case: skyrl.Case) -> Thin:
    """A loss that normalises its advantages as the trainer does, and adds the KL as the worker."""
    takes = signature(case.objective, beta=True, on_policy=case.batch.get("on_policy", False))
    expected, lines = dict(takes.expected), []
    if takes.takes_clip:
        lines.append("config.eps_clip_low = config.eps_clip_high = clip_eps")
    if takes.takes_beta:
        lines.append("config.kl_loss_coef = beta")
    if case.option in RECIPES:
        expected["recipe"] = RECIPES[case.option]
    body = f"""{takes.batch}
config = {literal(skyrl.algorithm(case.config))}
{"; ".join(lines)}
return skyrl_loss(SimpleNamespace(config=config), batch)(logps)"""
    # k1 as a loss has an expected gradient of 0
    faults = ("KLD004",) if case.objective.divergence.estimator == "k1" else ()
    expected = UNKNOWN.get(case.option, expected)
    unknown = case.option in UNKNOWN
    return Thin(case.option, takes.parameters, body, expected, faults, unknown)


LOSSES = [
    thin(case)
    for case in (*losses(), *reductions(), *penalties())
    if case.objective.mismatch.action == "none"
]


OVER_BATCH = {'advantage_estimator="reinforce++", gamma=1'}
"""Estimators without groups; here all completions are equally long."""


def grouped(how: skyrl.Estimator) -> Thin:
    """An advantage function for completions of one token."""
    expected, parameters, groups = advantage(how.advantage), "rewards, group_ids", "group_ids"
    if how.option in OVER_BATCH:
        expected = {"baseline": "batch-mean", "scale": "batch-sample-std"}
        parameters, groups = "rewards", "range(len(rewards))"
    if how.advantage.scale == "group-mean":  # whose eps is not measured
        expected = {"baseline": "group-mean", "scale": "group-mean"}
    body = f"""
how = SimpleNamespace(function={how.function!r}, keywords={literal(how.keywords)})
mask = torch.ones((len(rewards), 1), dtype=rewards.dtype)
return skyrl_advantages(how, rewards, np.array({groups}), mask)[:, 0]"""
    return Thin(how.option, parameters, body, expected, doc="The framework's advantages.")


ADVANTAGES = [grouped(how) for how in ESTIMATORS]
DIVERGENCES = [
    Thin(f"compute_approx_kl, {name}", "log_probs, ref_log_probs, mask", f"""
return compute_approx_kl(log_probs, ref_log_probs, mask, {name!r})""", doc="An estimate.")
    for name in ("k1", "k2", "k3", "abs")
]  # fmt: skip


def head() -> str:
    code = skyrl.code(single=True)
    given = ("self", "output", "num_actions", "loss_mask", "action_log_probs",
             "base_action_log_probs", "policy_loss", "microbatch_weight")  # fmt: skip
    roots = {name: getattr(code.utils, name) for name in skyrl.LOSSES.values()}
    estimators = {name: getattr(code.utils, name) for name in skyrl.ESTIMATORS}
    utils = ", ".join(f"{name}={name}" for name in roots | estimators)
    parts = [
        CONFIG,
        needed_by(code.added),
        wheel_functions(normalise=code.normalise, **roots, **estimators),
        run_of("added", code.added, *given),
        f"LOSSES = {literal(skyrl.LOSSES)}",
        "def algorithm(options):\n    return options",
        helpers(skyrl.Data, skyrl.reduced, skyrl.skyrl_loss, skyrl.at_the_end,
                skyrl.skyrl_advantages),
        f"""
def code(single=False):
    import sys
    sys.modules.setdefault("loguru", Config(logger=Config(warning=lambda message: None)))
    return Config(utils=Config({utils}), normalise=normalise, added=added)
""",
    ]  # fmt: skip
    return "\n\n\n".join(parts)


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    folder = tmp_path_factory.mktemp("skyrl")
    return Checked(
        folder, head(), policy_loss=LOSSES, compute_advantages=ADVANTAGES, approx_kl=DIVERGENCES
    )


@pytest.mark.parametrize("row", LOSSES, ids=lambda row: row.option)
def test_check_is_silent_on_a_skyrl_loss_and_names_it(checked: Checked, row: Thin) -> None:
    checked.assert_silent(row)
    checked.assert_named(row)


@pytest.mark.parametrize("row", ADVANTAGES, ids=lambda row: row.option)
def test_check_is_silent_on_skyrl_advantages(checked: Checked, row: Thin) -> None:
    checked.assert_silent(row)
    checked.assert_named(row)


@pytest.mark.parametrize("row", DIVERGENCES, ids=lambda row: row.option)
def test_check_is_silent_on_a_skyrl_divergence(checked: Checked, row: Thin) -> None:
    checked.assert_silent(row)
    assert checked.point(row)["role"] == "divergence-estimate"
