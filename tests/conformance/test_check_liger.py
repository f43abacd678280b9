"""`check` on the GRPO loss of Liger-Kernel 0.8.5: silent, and named as the options say."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance import test_liger as liger
from tests.conformance.checked import Checked, Thin
from tests.conformance.scripts import CONFIG, helpers, literal, wheel_functions
from tests.conformance.signatures import signature

pytestmark = pytest.mark.conformance
RECIPES = {
    'loss_type="grpo", importance_sampling_level="token", beta=0.04': "grpo",
    'loss_type="grpo", importance_sampling_level="sequence", beta=0.04': "gspo",
    'loss_type="dr_grpo", importance_sampling_level="token", beta=0.04': "dr_grpo",
    'loss_type="cispo", importance_sampling_level="token", beta=0.04': "cispo",
    'loss_type="bnpo", importance_sampling_level="token", beta=0.0': "grpo",
}


def thin(case: liger.Case) -> Thin:
    """A loss with the options of the case."""
    config: dict[str, Any] = dict(case.config)
    items = config.pop("num_items_in_batch", None)
    takes = signature(case.objective, beta=True, on_policy=case.batch.get("on_policy", False))
    changes, expected = [f"**{literal(config)}"], dict(takes.expected)
    if takes.takes_clip:
        changes.append("'epsilon_low': clip_eps, 'epsilon_high': clip_eps")
    if takes.takes_beta:
        changes.append("'beta': beta")
    if items:  # tokens of the accumulation window: those of this batch
        changes.append("'num_items_in_batch': mask.sum()")
    if case.option in RECIPES:
        expected["recipe"] = RECIPES[case.option]
    body = f"""{takes.batch}
case = SimpleNamespace(config={{{", ".join(changes)}}}, weights="")
return liger_loss(case, batch)(logps)"""
    return Thin(case.option, takes.parameters, body, expected)


def is_looked_at(case: liger.Case) -> bool:
    """Corrections need a sampler; of the loss types, those with a KL and one without."""
    without = case.option.endswith("beta=0.0") and '"bnpo"' not in case.option
    return case.objective.mismatch.action == "none" and not without


LOSSES = [thin(case) for case in liger.CASES if is_looked_at(case)]


def head() -> str:
    parts = [
        CONFIG,
        wheel_functions(ppo_loss_fn=liger.code()),
        "def code():\n    return ppo_loss_fn",
        helpers(liger.liger_loss),
    ]
    return "\n\n\n".join(parts)


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    folder = tmp_path_factory.mktemp("liger")
    return Checked(folder, head(), policy_loss=LOSSES)


@pytest.mark.parametrize("row", LOSSES, ids=lambda row: row.option)
def test_check_is_silent_on_a_liger_loss_and_names_it(checked: Checked, row: Thin) -> None:
    checked.assert_silent(row)
    checked.assert_named(row)
