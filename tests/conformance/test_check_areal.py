"""`check` on the functions of AReaL 1.0.4: silent, and named as the options say."""

from __future__ import annotations

import pytest

from tests.conformance import test_areal as areal
from tests.conformance.checked import Checked, Thin
from tests.conformance.scripts import CONFIG, helpers, literal, wheel_functions
from tests.conformance.signatures import advantage, signature

pytestmark = pytest.mark.conformance
RECIPES = {"eps_clip=0.2": "grpo", "eps_clip_higher=0.28": "dapo"}


def thin(case: areal.Case) -> Thin:
    """A loss whose behaviour policy is the proximal one."""
    takes = signature(case.objective)
    clip = "'eps_clip': clip_eps" if takes.takes_clip else ""
    expected = dict(takes.expected)
    if case.option in RECIPES:
        expected["recipe"] = RECIPES[case.option]
    body = f"""{takes.batch}
case = SimpleNamespace(config={{**{literal(case.config)}, {clip}}}, rejection={{}},
                       loss={case.loss!r})
return areal_loss(case, batch)(logps)"""
    return Thin(case.option, takes.parameters, body, expected)


LOSSES = [thin(case) for case in areal.losses()]
PLAIN = {"mean_leave1out": False, "std_unbiased": True, "eps": 1e-5}


def grouped(name: str) -> Thin:
    """`reward_norm` as an advantage function."""
    config, how = areal.NORMS[name]
    over_batch = config["mean_level"] == "batch"
    size = "len(rewards)" if over_batch or "one group" in name else "num_generations"
    parameters = "rewards" if size == "len(rewards)" else "rewards, num_generations=4"
    expected = advantage(how)
    if "one group" in name:  # the batch is the group
        expected |= {"baseline": "batch-mean"}
    given = {key: value for key, value in (PLAIN | config).items() if key != "group_size"}
    body = f"return Normalization(Config(**{literal(given)}, group_size={size}))(rewards)"
    return Thin(name, parameters, body, expected, doc="The framework's advantages.")


ADVANTAGES = [grouped(name) for name in areal.NORMS]


def head() -> str:
    code = areal.code()
    losses = {name: getattr(code, name) for name in ("ppo_actor_loss_fn", "sapo_loss_fn")}
    parts = [
        CONFIG,
        "dist = torch.distributed\nRejectionSamplingResult = SimpleNamespace",
        wheel_functions(Normalization=code.Normalization, **losses),
        "def code():\n    return Config(" + ", ".join(f"{name}={name}" for name in losses) + ")",
        helpers(areal.areal_loss),
    ]
    return "\n\n\n".join(parts)


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    folder = tmp_path_factory.mktemp("areal")
    return Checked(folder, head(), policy_loss=LOSSES, compute_advantages=ADVANTAGES)


@pytest.mark.parametrize("row", LOSSES, ids=lambda row: row.option)
def test_check_is_silent_on_an_areal_loss_and_names_it(checked: Checked, row: Thin) -> None:
    checked.assert_silent(row)
    checked.assert_named(row)


@pytest.mark.parametrize("row", ADVANTAGES, ids=lambda row: row.option)
def test_check_is_silent_on_areal_advantages(checked: Checked, row: Thin) -> None:
    checked.assert_silent(row)
    checked.assert_named(row)
