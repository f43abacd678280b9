"""`check` on the functions of OpenRLHF 0.11.2: silent, and named as the options say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.conformance import openrlhf
from tests.conformance.checked import Checked, Thin
from tests.conformance.scripts import CONFIG, helpers, literal, needed_by, run_of, wheel_functions
from tests.conformance.signatures import advantage, signature
from tests.conformance.test_openrlhf import CASES

pytestmark = pytest.mark.conformance
RECIPES = {
    "defaults": "grpo",
    "eps_clip_low_high 0.2 0.28": "dapo",
    "loss_agg_mode=seq-mean-token-mean": "grpo",
    "policy_loss_type=gspo": "gspo",
    "policy_loss_type=gspo, eps_clip_low_high 3e-4 4e-4": "gspo",
    "kl.use_loss, estimator=k3": "grpo",
}
USELESS_K1 = {"kl.use_loss, estimator=k1": ("KLD004",)}
"""As a loss its expected gradient is 0; OpenRLHF has `unbiased_gradient` for what was meant."""
UNKNOWN = {
    # each row counts 1/6, however many there are
    "loss_agg_mode=seq-mean-token-mean, 12 rows over 2 ranks": {"surrogate": "min-clip"},
}  # fmt: skip


def thin(case: openrlhf.Case) -> Thin:
    """A loss that fakes the actor with the options of the case."""
    takes = signature(case.objective, on_policy=case.batch.get("on_policy", False))
    expected = dict(takes.expected)
    clip = "'clip_eps_low': clip_eps, 'clip_eps_high': clip_eps" if takes.takes_clip else ""
    if case.totals:  # counts of the optimizer step: a constant in the place of the tokens here
        expected |= {"aggregation": "constant", "factor": 1 / 40}
    if case.option in RECIPES:
        expected["recipe"] = RECIPES[case.option]
    body = f"""{takes.batch}
case = SimpleNamespace(loss={{**{literal(case.loss)}, {clip}}}, kl={literal(case.kl)},
                       totals={literal(case.totals)}, entropy={case.entropy})
return openrlhf_loss(case, batch)(logps)"""
    row = Thin(case.option, takes.parameters, body, expected, USELESS_K1.get(case.option, ()))
    if case.option in UNKNOWN:
        return replace(row, unknown=True, expected=UNKNOWN[case.option])
    return row


LOSSES = [thin(case) for case in CASES if case.objective.mismatch.action == "none"]


REINFORCE = {"baseline": "batch-mean", "scale": "batch-population-std"}
"""Rewards whitened by tokens, where all completions are equally long."""
OVER_BATCH = {
    "reinforce": REINFORCE,
    "flash_reinforce": {"baseline": "batch-mean", "scale": "none"},
}
"""Estimators without groups."""


def grouped(estimator: str) -> Thin:
    """An advantage function that fakes the experience maker; all completions have two tokens."""
    how = openrlhf.ESTIMATORS[estimator]
    expected = OVER_BATCH.get(estimator, advantage(how) if how.whiten == "none" else {})
    size = "1" if estimator in OVER_BATCH else "num_generations"
    body = f"""
mask = torch.ones((len(rewards), 2), dtype=torch.long)
return openrlhf_advantages(rewards, mask, {size}, {estimator!r})[:, 0]"""
    parameters = "rewards" if estimator in OVER_BATCH else "rewards, num_generations=4"
    # unknown: reinforce_baseline, whose scale is that of the centred rewards
    return Thin(f"advantage.estimator={estimator}", parameters, body, expected,
                unknown=not expected, doc="The framework's advantages.")  # fmt: skip


ADVANTAGES = [grouped(estimator) for estimator in openrlhf.ESTIMATORS]
DIVERGENCES = [
    Thin(f"compute_approx_kl, {name}", "log_probs, ref_log_probs", f"""
return compute_approx_kl(log_probs, ref_log_probs, kl_estimator={name!r})""", doc="An estimate.")
    for name in ("k1", "k2", "k3")
]  # fmt: skip


def head() -> str:
    code = openrlhf.code()
    given = ("self", "actor_loss", "action_log_probs", "base_action_log_probs",
             "old_action_log_probs", "experience", "loss_batch_info", "kl_ctl",
             "output")  # fmt: skip
    makers = {
        name: getattr(code, name)
        for name in ("compute_advantages_and_returns", "get_cumulative_returns")
    }
    parts = [
        CONFIG,
        "nn = torch.nn",
        f"BETA = {openrlhf.BETA}",
        needed_by(code.total),
        wheel_functions(PolicyLoss=code.PolicyLoss, compute_approx_kl=code.compute_approx_kl),
        run_of("total", code.total, *given),
        "def apply_length_penalties(*_):\n    return None",
        wheel_functions(**makers),
        "def code():\n    return Config(PolicyLoss=PolicyLoss, total=total, "
        + ", ".join(f"{name}={name}" for name in makers)
        + ")",
        helpers(openrlhf.openrlhf_loss, openrlhf.openrlhf_advantages),
    ]
    return "\n\n\n".join(parts)


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    folder = tmp_path_factory.mktemp("openrlhf")
    return Checked(
        folder, head(), policy_loss=LOSSES, compute_advantages=ADVANTAGES, approx_kl=DIVERGENCES
    )


@pytest.mark.parametrize("row", LOSSES, ids=lambda row: row.option)
def test_check_is_silent_on_an_openrlhf_loss_and_names_it(checked: Checked, row: Thin) -> None:
    checked.assert_silent(row)
    checked.assert_named(row)


@pytest.mark.parametrize("row", ADVANTAGES, ids=lambda row: row.option)
def test_check_is_silent_on_openrlhf_advantages(checked: Checked, row: Thin) -> None:
    checked.assert_silent(row)
    checked.assert_named(row)


@pytest.mark.parametrize("row", DIVERGENCES, ids=lambda row: row.option)
def test_check_is_silent_on_an_openrlhf_divergence(checked: Checked, row: Thin) -> None:
    checked.assert_silent(row)
    assert checked.point(row)["role"] == "divergence-estimate"
