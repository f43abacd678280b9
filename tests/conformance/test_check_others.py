"""`check` on the functions of ms-swift 4.6.0 and Oat 0.2.4: silent, and named as they should be."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance import test_others as others
from tests.conformance.checked import Checked, Thin
from tests.conformance.scripts import CONFIG, helpers, literal, needed_by, run_of, wheel_functions
from tests.conformance.signatures import Signature, advantage, signature

pytestmark = pytest.mark.conformance
RECIPES = {
    'loss_type="grpo", importance_sampling_level="token", beta=0.04': "grpo",
    'loss_type="bnpo", importance_sampling_level="token", beta=0.0': "grpo",
    'loss_type="dr_grpo", importance_sampling_level="token", beta=0.04': "dr_grpo",
    'loss_type="cispo", importance_sampling_level="token", beta=0.04': "cispo",
    'loss_type="grpo", importance_sampling_level="sequence", beta=0.04': "gspo",
    'loss_type="grpo", importance_sampling_level="sequence_token", beta=0.04': "gspo",
    'critic_type="grpo"': "grpo",
    'critic_type="drgrpo"': "dr_grpo",
}


def swift(case: others.Case) -> Thin:
    """A loss of ms-swift with the options of the case."""
    takes = signature(case.objective, beta=True, on_policy=case.batch.get("on_policy", False))
    return thin(case, takes, "'epsilon_low': clip_eps, 'epsilon_high': clip_eps", "swift_loss")


def oat(case: others.Case) -> Thin:
    """A loss of Oat with the options of the case; the actor samples with the old policy."""
    return thin(case, signature(case.objective, beta=True), "'cliprange': clip_eps", "oat_loss")


def thin(case: others.Case, takes: Signature, clip: str, loss: str) -> Thin:
    """A loss whose clip range and coefficient are arguments, where it takes them."""
    changes, expected = [f"**{literal(case.config)}"], dict(takes.expected)
    if takes.takes_clip:
        changes.append(clip)
    if takes.takes_beta:
        changes.append("'beta': beta")
    if case.option in RECIPES:
        expected["recipe"] = RECIPES[case.option]
    body = f"""{takes.batch}
case = SimpleNamespace(config={{{", ".join(changes)}}})
return {loss}(case, batch)(logps)"""
    return Thin(case.option, takes.parameters, body, expected)


def is_looked_at(case: others.Case) -> bool:
    """Corrections need a sampler; of the loss types, those with a KL and one without."""
    without = case.option.endswith("beta=0.0") and '"bnpo"' not in case.option
    return case.objective.mismatch.action == "none" and not without


SWIFT = [swift(case) for case in others.SWIFT_CASES if is_looked_at(case)]
OAT = [oat(case) for case in others.OAT_CASES]


def swift_group(option: str) -> Thin:
    expected = advantage(others.SWIFT_ADVANTAGES[option])
    body = f"""
given = {literal(others.options(option))}
weights = torch.ones(1, dtype=rewards.dtype)
return compute_advantages(rewards[:, None], weights, num_generations, **given)[0]"""
    return Thin(f"ms-swift, {option}", "rewards, num_generations=4", body, expected,
                doc="The framework's advantages.")  # fmt: skip


def oat_group(kind: str, how: Any) -> Thin:
    body = f"""
learner = Config(args=Config(num_samples=num_generations, critic_type={kind!r}))
return compute_monte_carlo_advantages(learner, rewards[:, None], None)"""
    return Thin(f'Oat, critic_type="{kind}"', "rewards, num_generations=4", body, advantage(how),
                doc="The framework's advantages.")  # fmt: skip


ADVANTAGES = [
    *map(swift_group, others.SWIFT_ADVANTAGES),
    oat_group("grpo", others.OAT_GRPO),
    oat_group("drgrpo", others.OAT_DR),
]


def head() -> str:
    return "\n\n\n".join([CONFIG, f"LENGTH = {others.LENGTH}", *swift_parts(), *oat_parts()])


def swift_parts() -> list[str]:
    code = others.swift_code()
    methods = ", ".join(f"{name}={name}" for name in code.methods)
    given = ("self", "grpo_batch", "per_token_logps", "completion_mask", "entropy_mask")
    fake = helpers(others.swift_loss)
    return [
        "def gather_object(values):\n    return values",
        needed_by(code.loss),
        wheel_functions(**code.methods, compute_advantages=code.compute_advantages),
        run_of("swift_statements", code.loss, *given),
        f"def swift_code():\n    return Config(loss=swift_statements, methods=dict({methods}))",
        fake.replace("num_items_in_batch=40", "num_items_in_batch=batch.mask.sum()"),
    ]


def oat_parts() -> list[str]:
    code = others.oat_code()
    roots = {name: value for name, value in vars(code).items() if name != "loss"}
    given = ("self", "args", "new_logps", "mb_logps", "mb_actor_logps", "mb_advantage",
             "mb_response_masks", "mb_loss_masks", "mb_last_valid_token_pos", "mini_batch_inds",
             "ref_logps", "infos", "stats", "kl_v1_sum", "kl_v2_sum", "act_num_token")  # fmt: skip
    return [
        wheel_functions(**roots),
        run_of("oat_statements", code.loss, *given),
        "def oat_code():\n"
        "    return Config(loss=oat_statements, masked_sum=masked_sum, masked_mean=masked_mean)",
        helpers(others.oat_loss),
    ]


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    folder = tmp_path_factory.mktemp("others")
    return Checked(folder, head(), policy_loss=[*SWIFT, *OAT], compute_advantages=ADVANTAGES)


@pytest.mark.parametrize("row", SWIFT, ids=lambda row: row.option)
def test_check_is_silent_on_a_swift_loss_and_names_it(checked: Checked, row: Thin) -> None:
    checked.assert_silent(row)
    checked.assert_named(row)


@pytest.mark.parametrize("row", OAT, ids=lambda row: row.option)
def test_check_is_silent_on_an_oat_loss_and_names_it(checked: Checked, row: Thin) -> None:
    checked.assert_silent(row)
    checked.assert_named(row)


@pytest.mark.parametrize("row", ADVANTAGES, ids=lambda row: row.option)
def test_check_is_silent_on_their_advantages(checked: Checked, row: Thin) -> None:
    checked.assert_silent(row)
    checked.assert_named(row)
