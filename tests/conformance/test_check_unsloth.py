"""`check` on the GRPO loss of Unsloth Zoo 2026.10.9: silent, and named as the options say."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance import test_unsloth as unsloth
from tests.conformance.checked import Checked, Thin
from tests.conformance.scripts import CONFIG, helpers, literal, wheel_functions
from tests.conformance.signatures import signature

pytestmark = pytest.mark.conformance
LEVELS = ("token", "sequence")
RECIPES = {
    'loss_type="grpo", importance_sampling_level="token", beta=0.04': "grpo",
    'loss_type="grpo", importance_sampling_level="sequence", beta=0.04': "gspo",
    'loss_type="dr_grpo", importance_sampling_level="token", beta=0.04': "dr_grpo",
    'loss_type="cispo", importance_sampling_level="token", beta=0.04': "cispo",
    "delta=1.5, epsilon_high=0.28": "dapo",
}


def thin(case: unsloth.Case) -> Thin:
    """A loss with the options of the case."""
    config: dict[str, Any] = dict(case.config)
    items = config.pop("num_items_in_batch", None)
    takes = signature(case.objective, beta=True, on_policy=case.batch.get("on_policy", False))
    changes, expected = [], dict(takes.expected)
    if takes.takes_clip:
        changes.append("'epsilon_low': clip_eps, 'epsilon_high': clip_eps")
    if takes.takes_beta:
        changes.append("'beta': beta")
    if items:  # tokens of the accumulation window: those of this batch
        share = config.get("steps_per_generation", 1)
        share /= config.get("current_gradient_accumulation_steps", 1)
        changes.append(f"'num_items_in_batch': mask.sum() * {share}")
    elif config.get("current_gradient_accumulation_steps"):
        expected |= {"aggregation": "constant-per-sequence",
                     "factor": 1 / config["current_gradient_accumulation_steps"]}  # fmt: skip
    if case.option in RECIPES:
        expected["recipe"] = RECIPES[case.option]
    body = f"""{takes.batch}
case = SimpleNamespace(config={{{", ".join([f"**{literal(config)}", *changes])}}})
return unsloth_loss(case, batch)(logps)"""
    return Thin(case.option, takes.parameters, body, expected)


def is_looked_at(case: unsloth.Case) -> bool:
    """Corrections need a sampler; of the loss types, those with a KL and two without."""
    without = case.option.endswith("beta=0.0") and '"grpo"' not in case.option
    return case.objective.mismatch.action == "none" and not without


LOSSES = [thin(case) for case in unsloth.CASES if is_looked_at(case)]


def head() -> str:
    parts = [
        CONFIG,
        f"LENGTH = {unsloth.LENGTH}",
        wheel_functions(grpo_compute_loss=unsloth.code()),
        "def code():\n    return grpo_compute_loss",
        helpers(unsloth.unsloth_loss),
    ]
    return "\n\n\n".join(parts)


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    folder = tmp_path_factory.mktemp("unsloth")
    return Checked(folder, head(), policy_loss=LOSSES)


@pytest.mark.parametrize("row", LOSSES, ids=lambda row: row.option)
def test_check_is_silent_on_an_unsloth_loss_and_names_it(checked: Checked, row: Thin) -> None:
    checked.assert_silent(row)
    checked.assert_named(row)
