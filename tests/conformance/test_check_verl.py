"""`check` on the functions of verl 0.9.1: silent, and named as the options say."""

from __future__ import annotations

import re

import pytest

from tests.conformance import verl
from tests.conformance.checked import Checked, Thin
from tests.conformance.scripts import CONFIG, helpers, literal, wheel_functions
from tests.conformance.signatures import advantage, signature
from tests.conformance.test_verl import CASES
from tests.conformance.test_verl_advantages import ADVANTAGES as ESTIMATORS

pytestmark = pytest.mark.conformance
MODES = ("vanilla", "gspo", "sapo", "gpg", "cispo", "geo_mean", "dro", "reinforce", "bypass_mode")
RECIPES = {
    "defaults": "grpo",
    "clip_ratio_c=1e9": "grpo",
    "clip_ratio_high=0.28, clip_ratio_c=1.5": "dapo",
    'loss_mode="gspo", loss_agg_mode="seq-mean-token-mean"': "gspo",
    'loss_mode="cispo"': "cispo",
    'loss_mode="cispo", clip_ratio_low=1.0, clip_ratio_high=4.0': "cispo",
    'loss_agg_mode="seq-mean-token-mean"': "grpo",
    'loss_mode="dro", dro_beta=0.3': "dro",
    'use_kl_loss=True, kl_loss_coef=0.04, kl_loss_type="low_var_kl"': "grpo",
}
ALIASES = ('"kl"', '"kl+"', '"mse"', '"mse+"', '"k3"', '"k3+"')
FAULTS = {
    # The constant is then the width that the batch happens to be padded to: the same rows weigh
    # less beside a longer one. test_verl_norm_without_a_scale_factor_depends_on_the_padding
    # measures it; other frameworks divide by the largest length there can be.
    'loss_agg_mode="seq-mean-token-sum-norm", loss_scale_factor=None': ("MSK002",),
    # As a loss the expected gradient of k1 is 0; verl has `k1+` for what was meant.
    'use_kl_loss=True, kl_loss_coef=0.04, kl_loss_type="k1"': ("KLD004",),
}


def thin(case: verl.Case) -> Thin:
    """A loss with an actor of these options."""
    takes = signature(case.objective, beta=True)
    expected, lines = dict(takes.expected), []
    if takes.takes_clip:
        lines.append("config.clip_ratio_low = config.clip_ratio_high = clip_eps")
    if takes.takes_beta:
        lines.append("config.kl_loss_coef = beta")
    if case.option in RECIPES:
        expected["recipe"] = RECIPES[case.option]
    body = f"""{takes.batch}
config = {literal(verl.actor(case.config, case.policy))}
{"; ".join(lines)}
case = SimpleNamespace(config=config, policy=None, rollout={{}}, info={literal(case.info)})
return verl_loss(case, batch)(logps)"""
    if "MSK002" in FAULTS.get(case.option, ()):
        expected = {"surrogate": "dual-clip"}
    return Thin(case.option, takes.parameters, body, expected, FAULTS.get(case.option, ()))


def is_looked_at(case: verl.Case) -> bool:
    """Corrections need a sampler; global counts are constants; some options are aliases."""
    alias = re.search(r"kl_loss_type=(.*)$", case.option)
    plain = case.objective.mismatch.action == "none" and not case.info
    return plain and not (alias and alias[1] in ALIASES)


LOSSES = [thin(case) for case in CASES if is_looked_at(case)]
OVER_BATCH = {'adv_estimator="reinforce_plus_plus", gamma=1'}


def grouped(how: verl.Estimator) -> Thin:
    """An advantage function for completions of one token."""
    expected, parameters, groups = advantage(how.advantage), "rewards, group_ids", "group_ids"
    if how.option in OVER_BATCH:
        expected = {"baseline": "batch-mean", "scale": "batch-sample-std"}
        parameters, groups = "rewards", "range(len(rewards))"
    elif "gdpo" in how.option:  # the batch's std of z-scores is a constant where all groups live
        expected = {"baseline": "group-mean", "scale": "population-std", "factor": (7 / 8) ** 0.5}
    elif how.advantage.whiten != "none":
        expected = {}
    if how.advantage.baseline == "length-weighted-mean":  # all lengths are 1
        expected["baseline"] = "group-mean"
    doc = "GDPO advantages." if "gdpo" in how.option else "The framework's advantages."
    body = f"""
how = SimpleNamespace(function={how.function!r}, keywords={literal(how.keywords)})
mask = torch.ones((len(rewards), 1), dtype=rewards.dtype)
return verl_advantages(how, rewards, np.array({groups}), mask)[:, 0]"""
    return Thin(how.option, parameters, body, expected, unknown=not expected, doc=doc)


ADVANTAGES = [grouped(how) for how in ESTIMATORS]
DIVERGENCES = [
    Thin(f"kl_penalty, {name}", "log_probs, ref_log_probs", f"""
return kl_penalty(log_probs, ref_log_probs, {name!r})""", doc="An estimate.")
    for name in ("kl", "abs", "mse", "low_var_kl", "k1+", "k2+", "k3+")
]  # fmt: skip


def head() -> str:
    core = verl.code().core
    losses = {f"compute_policy_loss_{mode}": None for mode in MODES}
    estimators = {f"compute_{name}_advantage": None for name in verl.ESTIMATORS}
    roots = {name: getattr(core, name) for name in (*losses, *estimators, "kl_penalty", "agg_loss")}
    rollout = {"compute_rollout_correction_and_rejection_mask":
               verl.code().rollout.compute_rollout_correction_and_rejection_mask}  # fmt: skip
    table = ", ".join(f"{mode}=compute_policy_loss_{mode}" for mode in MODES)
    names = ", ".join(f"{name}={name}" for name in roots)
    parts = [
        CONFIG,
        "ActorConfig = Config\n\n\nclass AlgoConfig:\n    pass",
        wheel_functions(**roots, ppo_loss=verl.code().trainer.ppo_loss),
        "def no_padding_2_padding(values, data):\n    return values",
        f"def get_policy_loss_fn(mode):\n    return dict({table})[mode]",
        "class AggregationType:\n    SUM = 'sum'\n    MEAN = 'mean'",
        wheel_functions(**rollout),
        helpers(verl.DataProto, verl.Metric, verl.Data, verl.corrected, verl.verl_loss,
                verl.at_the_end, verl.verl_advantages),
        "def actor(config, policy):\n    return config",
        f"""
def code():
    # what the bypass mode imports when it is called
    name = "verl.trainer.ppo.rollout_corr_helper"
    sys.modules.setdefault(name, Config({", ".join(f"{one}={one}" for one in rollout)}))
    return Config(trainer=Config(ppo_loss=ppo_loss), core=Config({names}))
""",
    ]  # fmt: skip
    return "\n\n\n".join(parts)


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    folder = tmp_path_factory.mktemp("verl")
    return Checked(
        folder, head(), policy_loss=LOSSES, compute_advantages=ADVANTAGES, approx_kl=DIVERGENCES
    )


@pytest.mark.parametrize("row", LOSSES, ids=lambda row: row.option)
def test_check_is_silent_on_a_verl_loss_and_names_it(checked: Checked, row: Thin) -> None:
    checked.assert_silent(row)
    checked.assert_named(row)


@pytest.mark.parametrize("row", ADVANTAGES, ids=lambda row: row.option)
def test_check_is_silent_on_verl_advantages(checked: Checked, row: Thin) -> None:
    checked.assert_silent(row)
    checked.assert_named(row)


@pytest.mark.parametrize("row", DIVERGENCES, ids=lambda row: row.option)
def test_check_is_silent_on_a_verl_divergence(checked: Checked, row: Thin) -> None:
    checked.assert_silent(row)
    assert checked.point(row)["role"] == "divergence-estimate"
