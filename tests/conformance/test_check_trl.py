"""`check` on the functions of TRL 1.16.0: silent, and named as the options say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rlproof.space.advantages import Advantage
from tests.conformance import trl
from tests.conformance.checked import Checked, Thin
from tests.conformance.scripts import CONFIG, helpers, literal, needed_by, run_of, wheel_functions
from tests.conformance.signatures import advantage, signature
from tests.conformance.test_trl import CASES
from tests.conformance.test_trl_terms import vespo

pytestmark = pytest.mark.conformance
RECIPES = {
    'loss_type="grpo", importance_sampling_level="token"': "grpo",
    'loss_type="dapo", importance_sampling_level="token"': "grpo",  # clipped symmetrically
    'loss_type="dr_grpo", importance_sampling_level="token"': "dr_grpo",
    'loss_type="cispo", importance_sampling_level="token"': "cispo",
    'loss_type="grpo", importance_sampling_level="sequence"': "gspo",
    'epsilon=3e-4, epsilon_high=4e-4, importance_sampling_level="sequence"': "gspo",
    "epsilon=0.2, epsilon_high=0.28": "dapo",
    "beta=0.04, use_bias_correction_kl=True": "grpo",
    "beta=0.04, use_bias_correction_kl=False": "grpo",
    "old_per_token_logps=None, beta=0.04, use_bias_correction_kl=True": "grpo",
}
UNKNOWN = {
    # other k and λ of the gamma weight than the published ones are not measured
    case.option: {"aggregation": "token-mean"}
    for case in vespo()
    if "vespo_k_pos" in case.option
}


def thin(case: trl.Case) -> Thin:
    """A loss that fakes a trainer with the options of the case."""
    config: dict[str, Any] = dict(case.config)
    items = config.pop("num_items_in_batch", None)
    takes = signature(case.objective, beta=True, on_policy=case.batch.get("on_policy", False))
    changes, expected = [], takes.expected
    if takes.takes_clip:
        changes.append("'epsilon_low': clip_eps, 'epsilon_high': clip_eps")
    if takes.takes_beta:
        changes.append("'beta': beta")
    if items:  # tokens of the accumulation window: those of this batch
        share = config.get("steps_per_generation", 1)
        share /= config.get("current_gradient_accumulation_steps", 1)
        changes.append(f"'num_items_in_batch': mask.sum() * {share}")
    elif config.get("current_gradient_accumulation_steps"):
        expected = {**expected, "factor": 1 / config["current_gradient_accumulation_steps"]}
    changed = ", ".join([f"**{literal(config)}", *changes])
    body = f"""{takes.batch}
case = SimpleNamespace(config={{{changed}}}, trainer={case.trainer!r})
return trl_loss(case, batch)(logps)"""
    if case.option in RECIPES:
        expected = {**expected, "recipe": RECIPES[case.option]}
    expected = UNKNOWN.get(case.option, expected)
    unknown = case.option in UNKNOWN
    return Thin(case.option, takes.parameters, body, expected, unknown=unknown)


LOSSES = [thin(case) for case in (*CASES, *vespo()) if case.objective.mismatch.action == "none"]


def grouped(option: str, function: str, config: dict[str, Any], expected: dict[str, Any]) -> Thin:
    """An advantage function that fakes a trainer of one reward function."""
    body = f"""
weights = torch.ones(1, dtype=rewards.dtype)
self = Config(**{literal(config)}, reward_weights=weights, reward_funcs=[None])
found = {function}(self=self, rewards_per_func=rewards[:, None], num_generations=num_generations,
                   device="cpu", old_per_token_logps=None, ref_per_token_logps=None,
                   completion_mask=None)
return found.advantages"""
    return Thin(option, "rewards, num_generations=4", body, expected, unknown=not expected,
                doc="The framework's advantages.")  # fmt: skip


SUM = {"multi_objective_aggregation": "sum_then_normalize"}
PLAIN = {"beta": 0.0, "normalize_advantages": False, "reward_clip_range": None}
LOO = advantage(Advantage("leave-one-out", "none"))
ADVANTAGES = [
    *(
        grouped(option, "grpo_group", {**SUM, "scale_rewards": scale}, advantage(how))
        for option, (scale, how) in trl.SCALES.items()
    ),
    grouped("RLOOTrainer", "rloo_group", PLAIN, LOO),
    grouped("RLOOTrainer, reward_clip_range", "rloo_group",
            {**PLAIN, "reward_clip_range": (-5.0, 5.0)}, LOO),
    # A − its mean over the std of all A: no scale of the rewards
    grouped("RLOOTrainer, normalize_advantages", "rloo_group",
            {**PLAIN, "normalize_advantages": True}, {}),
    # GDPO: the batch's std of the groups' z-scores is a constant where all groups have spread
    replace(
        grouped('multi_objective_aggregation="normalize_then_sum"', "grpo_group",
                {"multi_objective_aggregation": "normalize_then_sum", "scale_rewards": "group"},
                {"baseline": "group-mean", "scale": "population-std"}),
        doc="GDPO advantages of the framework."),
]  # fmt: skip


def head() -> str:
    code = trl.code()
    roots = {name: getattr(code, name) for name in ("grpo", "rloo", "gmpo")}
    names = ", ".join(f"{name}={name}" for name in roots)
    given = ("self", "rewards_per_func", "num_generations", "device", "old_per_token_logps",
             "ref_per_token_logps", "completion_mask")  # fmt: skip
    masks = ", ".join(f"{name}={name}" for name in vars(code.masks))
    parts = [
        CONFIG,
        wheel_functions(**roots, **vars(code.masks)),
        f"DEFAULTS = {literal(trl.DEFAULTS)}",
        f"ARGUMENTS = {literal(trl.ARGUMENTS)}",
        f"def code():\n    return Config({names}, masks=Config({masks}))",
        helpers(trl.trainer, trl.trl_loss),
        needed_by(code.advantages),
        run_of("grpo_group", code.advantages, *given),
        "def gather(x):\n    return x",
        run_of("rloo_group", code.rloo_advantages, *given),
    ]
    return "\n\n\n".join(parts)


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    folder = tmp_path_factory.mktemp("trl")
    return Checked(folder, head(), policy_loss=LOSSES, compute_advantages=ADVANTAGES)


@pytest.mark.parametrize("row", LOSSES, ids=lambda row: row.option)
def test_check_is_silent_on_a_trl_loss_and_names_it(checked: Checked, row: Thin) -> None:
    checked.assert_silent(row)
    checked.assert_named(row)


@pytest.mark.parametrize("row", ADVANTAGES, ids=lambda row: row.option)
def test_check_is_silent_on_trl_advantages_and_names_them(checked: Checked, row: Thin) -> None:
    checked.assert_silent(row)
    checked.assert_named(row)
