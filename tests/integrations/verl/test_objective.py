"""verl on objectives of ours: the losses that it has itself, sums over micro-batches, refusals.

Runs where verl is installed, as `test_recording.py` says. Shapes: B rows, T slots.
"""

import itertools
import json
import os
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from rlproof.errors import ConfigError
from rlproof.space.advantages import Advantage
from rlproof.space.batch import Batch, Rollout
from rlproof.space.divergences import Divergence
from rlproof.space.entropy import Entropy
from rlproof.space.filters import Filter
from rlproof.space.masks import Masks
from rlproof.space.mismatch import Mismatch
from rlproof.space.published import OBJECTIVES
from rlproof.space.surrogates import Clip
from rlproof.watch.command import inspect_path

HERE = Path(__file__).parent / "on_cpu"
pytestmark = [
    pytest.mark.conformance,
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("verl") is None, reason="verl is not installed"),
    pytest.mark.filterwarnings("ignore"),
]
B, T, DP = 12, 7, 2
CUTS = (0, 5, 6, 12)
REFUSED = {
    "seq-mask-tis": "needs its log-probs, which verl hands no loss",
    "prompt-mean": "needs to know the prompt of each row",
}
NEEDS_WHOLE = ("prime-rl",)


@pytest.fixture(scope="module", autouse=True)
def hooks():
    import rlproof.integrations.verl as module

    return module


@pytest.fixture(scope="module")
def core():
    from verl.trainer.ppo import core_algos

    return core_algos


def made(seed=0):
    """Log-probs off the policy, advantages of both signs and of 0, rows of every length."""
    import torch

    source = torch.Generator().manual_seed(seed)
    old = -3 * torch.rand(B, T, generator=source, dtype=torch.float64)
    new = old + 0.4 * torch.randn(B, T, generator=source, dtype=torch.float64)
    lengths = torch.randint(1, T + 1, (B, 1), generator=source)
    mask = torch.arange(T) < lengths
    adv = torch.randn(B, 1, generator=source, dtype=torch.float64)
    adv[3] = 0
    return new, old, (adv * mask), mask


def actor(mode="token-mean", **options):
    from verl.workers.config import FSDPActorConfig, PolicyLossConfig

    policy = PolicyLossConfig(**options.pop("policy", {}))
    return FSDPActorConfig(
        strategy="fsdp2", rollout_n=4, ppo_micro_batch_size_per_gpu=4, loss_agg_mode=mode,
        policy_loss=policy, **options,
    )  # fmt: skip


def counted(config, mask, dp=DP, scale=9):
    """As verl's `ppo_loss` sets them; every process has as much as this one."""
    config.global_batch_info.update(
        dp_size=dp, batch_num_tokens=int(mask.sum()) * dp, global_batch_size=len(mask) * dp,
        loss_scale_factor=scale,
    )  # fmt: skip
    return config


def value_and_slope(loss, data, config, cuts=(0, B), weights=None):
    """The sum over micro-batches of a loss and of its gradient."""
    import torch

    new, old, adv, mask = data
    value, slope = 0.0, torch.zeros_like(new)
    for low, high in itertools.pairwise(cuts):
        rows = slice(low, high)
        leaf = new[rows].clone().requires_grad_()
        found, metrics = loss(
            old_log_prob=old[rows], log_prob=leaf * 1.0, advantages=adv[rows],
            response_mask=mask[rows], loss_agg_mode=config.loss_agg_mode, config=config,
            rollout_is_weights=None if weights is None else weights[rows],
        )  # fmt: skip
        found.backward()
        value += float(found.detach())
        slope[rows] = leaf.grad
    return value, slope, metrics


def options_of(objective):
    """What verl must be told beside the name."""
    kl, modes = objective.divergence, {"sequence-mean": "seq-mean-token-mean"}
    if kl.place != "loss" or kl.target != "reference":
        return {}
    kind = {"k2": "mse", "k3": "low_var_kl"}[kl.estimator]
    mode = modes.get(objective.aggregation, objective.aggregation)
    return {
        "mode": mode, "use_kl_loss": True, "kl_loss_coef": kl.coefficient, "kl_loss_type": kind,
    }  # fmt: skip


def weights_of(objective, mask):
    if objective.mismatch.action == "none":
        return None
    import torch

    source = torch.Generator().manual_seed(5)
    made = 0.6 + 1.3 * torch.rand(mask.shape, generator=source, dtype=torch.float64)
    made[2, 0] = 0 if objective.mismatch.action == "mask" else 2.0
    return made * mask


OWN = {
    "vanilla": (OBJECTIVES["grpo-dual-clip"].objective, "token-mean", {}),
    "gspo": (OBJECTIVES["gspo-token"].objective, "seq-mean-token-mean",
             {"clip_ratio_low": 3e-4, "clip_ratio_high": 4e-4}),
    "sapo": (OBJECTIVES["sapo"].objective, "seq-mean-token-mean", {}),
    "gpg": (OBJECTIVES["gpg"].objective, "token-mean", {}),
    "cispo": (OBJECTIVES["cispo"].objective, "token-mean",
              {"clip_ratio_low": 1.0, "clip_ratio_high": 4.0}),
    "dro": (OBJECTIVES["dro"].objective, "token-mean", {"policy": {"dro_beta": 0.1}}),
    "dppo_tv": (OBJECTIVES["dppo-tv-score"].objective, "token-mean",
                {"clip_ratio_low": 0.2, "clip_ratio_high": 0.2, "clip_ratio_c": 20.0}),
    "dppo_kl": (OBJECTIVES["dppo-kl-score"].objective, "token-mean",
                {"clip_ratio_low": 0.05, "clip_ratio_high": 0.05, "clip_ratio_c": 20.0}),
}  # fmt: skip
"""Losses of verl with the coordinates of a published objective."""


@pytest.mark.parametrize("name", OWN)
def test_the_losses_that_verl_has_itself(core, name):
    """Value and gradient, with counts of two processes; verl adds 1e-8 to the length of a row."""
    objective, mode, options = OWN[name]
    data = made()
    config = counted(actor(mode, **options), data[3])
    theirs = value_and_slope(core.get_policy_loss_fn(name), data, config, CUTS)
    ours = value_and_slope(core.get_policy_loss_fn(f"rlproof:{objective.name}"), data, config, CUTS)
    assert float(theirs[1].abs().max()) > 1e-3
    assert ours[0] == pytest.approx(theirs[0], rel=1e-6, abs=1e-9)
    assert float((ours[1] - theirs[1]).abs().max()) < 1e-7


def test_shares_that_are_logged_are_verls(core):
    data = made()
    config = counted(actor(clip_ratio_c=1e9), data[3])
    theirs = value_and_slope(core.get_policy_loss_fn("vanilla"), data, config)[2]
    ours = value_and_slope(core.get_policy_loss_fn("rlproof:bnpo"), data, config)[2]
    assert ours["actor/pg_clipfrac"] > 0.1
    for key in ours:
        assert ours[key] == pytest.approx(theirs[key], rel=1e-6)


@pytest.mark.parametrize("name", [n for n in OBJECTIVES if n not in REFUSED])
def test_the_sum_over_micro_batches_is_the_objective(core, name):
    """Three uneven micro-batches against `Objective` on the whole, times two processes' share."""
    objective = OBJECTIVES[name].objective
    data = made()
    new, old, adv, mask = data
    config = counted(actor(**options_of(objective)), mask, dp=1)
    loss, weights = core.get_policy_loss_fn(f"rlproof:{name}"), weights_of(objective, mask)
    cuts = (0, B) if name in NEEDS_WHOLE else CUTS
    value, slope, _ = value_and_slope(loss, data, config, cuts, weights)
    plain = objective
    if objective.divergence.target == "reference":  # which verl adds
        plain = objective.but(divergence=Divergence())
    sampler = None if weights is None else old - weights.clamp(min=1e-300).log()
    scope = replace(Batch(new, adv, mask).scope, length=9.0)
    whole = Batch(new, adv, mask.double(), old, sampler=sampler, scope=scope)
    assert value == pytest.approx(float(plain.loss(whole)[0]), rel=1e-9)
    assert float((slope - plain.gradient(whole)).abs().max()) < 1e-12
    assert float(slope.abs().max()) > 1e-4


def test_processes_are_averaged(core):
    """Two processes with the same rows: the mean of their gradients is that of all rows."""
    data = made()
    loss = core.get_policy_loss_fn("rlproof:dapo")
    alone = value_and_slope(loss, data, counted(actor(), data[3], dp=1))
    beside = value_and_slope(loss, data, counted(actor(), data[3], dp=2))
    assert beside[0] == pytest.approx(alone[0], rel=1e-12)
    assert float((beside[1] - alone[1]).abs().max()) < 1e-15


def refusal(core, name, data, config, **more):
    with pytest.raises(ConfigError) as caught:
        value_and_slope(core.get_policy_loss_fn(f"rlproof:{name}"), data, config, **more)
    return str(caught.value)


@pytest.mark.parametrize("name", REFUSED)
def test_what_verl_cannot_serve_is_refused(core, name):
    data = made()
    assert REFUSED[name] in refusal(core, name, data, counted(actor(), data[3]))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("grpo", {}, "use_kl_loss is False; expected True"),
        ("grpo", {"use_kl_loss": True}, "kl_loss_coef is 0.001; expected 0.04"),
        ("grpo", {"use_kl_loss": True, "kl_loss_coef": 0.04, "kl_loss_type": "kl"},
         "kl_loss_type is 'kl'; expected 'low_var_kl' or 'k3'"),
        ("grpo", {"use_kl_loss": True, "kl_loss_coef": 0.04}, "loss_agg_mode, which is "
         "'token-mean'; expected 'seq-mean-token-mean'"),
        ("dapo", {"use_kl_loss": True}, "a divergence that the objective has not"),
        ("dapo", {"entropy_coeff": 0.01}, "entropy_coeff is 0.01; expected 0.0"),
        ("grpo-tis", {}, "rollout_is=token and rollout_is_threshold=2"),
        ("icepop", {}, "rollout_is=token and rollout_is_threshold='0.5_5'"),
    ],
)  # fmt: skip
def test_options_that_contradict_are_refused(core, name, options, message):
    data = made()
    assert message in refusal(core, name, data, counted(actor(**options), data[3]))


def test_weights_of_another_correction_are_refused(core):
    data = made()
    config, weights = counted(actor(), data[3]), 0.4 + 0.0 * data[0]
    assert "it has no correction" in refusal(core, "dapo", data, config, weights=weights)
    assert "a weight of 0.4 is outside of 0.5 to 5" in refusal(
        core, "icepop", data, config, weights=weights
    )
    assert "a weight of 2.4 is outside" in refusal(
        core, "grpo-tis", data, config, weights=weights + 2
    )


@pytest.mark.parametrize(
    ("name", "key", "message"),
    [
        ("dapo", "batch_num_tokens", "global_batch_info['batch_num_tokens']"),
        ("gspo", "global_batch_size", "global_batch_info['global_batch_size']"),
        ("dr_grpo", "loss_scale_factor", "set actor_rollout_ref.actor.loss_scale_factor"),
    ],
)
def test_a_count_that_is_missing_is_refused(core, name, key, message):
    data = made()
    config = counted(actor(), data[3])
    config.global_batch_info[key] = None
    assert message in refusal(core, name, data, config)


def test_a_denominator_of_what_is_dropped_needs_the_whole_mini_batch(core):
    data = made()
    config = counted(actor(), data[3], dp=1)
    said = refusal(core, "prime-rl", data, config, cuts=CUTS)
    assert "set the micro-batch to the mini-batch" in said


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"filter": Filter("zero-variance")}, "algorithm.filter_groups"),
        ({"entropy": Entropy(top_share=0.2)}, "entropy.top_share"),
        ({"temperature": 0.7}, "actor_rollout_ref.rollout.temperature"),
        ({"masks": Masks("dropped")}, "which rows were cut off"),
        ({"divergence": Divergence("loss", "sampler")}, "no log-probs of the sampler"),
        ({"divergence": Divergence("loss", gradient="ratio-weighted")}, "no kl_loss_type"),
        ({"rejection": Mismatch("mask")}, "the rejection compares with the sampler"),
        ({"mismatch": Mismatch("truncate", normalised=True)}, "none that rollout_correction"),
        ({"name": "dapo"}, "a published objective has this name"),
    ],
)
def test_a_point_that_verl_cannot_serve_is_not_registered(hooks, core, changes, message):
    objective = OBJECTIVES["dapo"].objective.but(**{"name": "mine", "clip": Clip(0.1)} | changes)
    with pytest.raises(ConfigError, match=message.replace(".", r"\.")):
        hooks.register_objective(objective)
    assert "rlproof:mine" not in core.POLICY_LOSS_REGISTRY


def test_a_point_of_ones_own(hooks, core):
    objective = OBJECTIVES["dapo"].objective.but(name="own", clip=Clip(0.1, 0.3))
    assert hooks.register_objective(objective) == "rlproof:own"
    data = made()
    config = counted(actor(clip_ratio_low=0.1, clip_ratio_high=0.3, clip_ratio_c=1e9), data[3])
    ours = value_and_slope(core.get_policy_loss_fn("rlproof:own"), data, config)
    theirs = value_and_slope(core.get_policy_loss_fn("vanilla"), data, config)
    assert float((ours[1] - theirs[1]).abs().max()) < 1e-15


def test_a_configuration_can_say_every_name(core):
    from hydra.core.override_parser.overrides_parser import OverridesParser

    for name in OBJECTIVES:
        said = OverridesParser.create().parse_override(f"algorithm.adv_estimator=rlproof:{name}")
        assert said.value() == f"rlproof:{name}"
        assert said.value() in core.ADV_ESTIMATOR_REGISTRY


# ---------------------------------------------------------------- advantages


def rewards_of(mask, seed=3):
    """One reward a row at its last real token; and the prompts, rows of one not together."""
    import torch

    source = torch.Generator().manual_seed(seed)
    reward = torch.randint(0, 3, (B,), generator=source).double()
    reward[[0, 4, 8]] = 1.0  # a prompt whose rewards are all equal
    scores = torch.zeros(mask.shape, dtype=torch.float64)
    scores[torch.arange(B), mask.sum(1) - 1] = reward
    return reward, scores, np.array([f"p{i % 4}" for i in range(B)], dtype=object)


@pytest.mark.parametrize(
    ("name", "theirs", "options"),
    [
        ("grpo", "grpo", {"scale": "sample-std", "eps": 1e-6}),
        ("rloo", "rloo", {}),
        ("opo", "opo", {}),
        ("reinforce++", "reinforce_plus_plus", {}),
    ],
)
def test_the_estimators_that_verl_has_itself(core, hooks, name, theirs, options):
    """Within 1e-6: verl adds its eps to a variance or a length, and in float32 to rewards."""
    from omegaconf import OmegaConf

    objective = OBJECTIVES[name].objective.but(divergence=Divergence())
    objective = objective.but(advantage=replace(objective.advantage, **options))
    mask = made()[3]
    _, scores, index = rewards_of(mask)
    given = {
        "token_level_rewards": scores, "response_mask": mask.long(), "index": index,
        "config": OmegaConf.create({"gamma": 1.0, "use_kl_in_reward": False}),
    }  # fmt: skip
    wanted = core.get_adv_estimator_fn(theirs)(**{**given, "token_level_rewards": scores.clone()})
    found = hooks.advantage_estimator(objective)(**given)
    assert float(wanted[0].abs().max()) > 0.5
    assert float((found[0] - wanted[0] * mask).abs().max()) < 2e-6


@pytest.mark.parametrize("name", ["rloo", "reinforce++"])
def test_a_divergence_in_the_reward_is_taken_off_by_verl(core, name):
    """verl's scores minus β·k1, against `Objective.advantages` of the rewards and log-probs."""
    from omegaconf import OmegaConf

    objective = OBJECTIVES[name].objective
    _, old, _, mask = made()
    ref = old + 0.3 * (old + 1).sin()
    reward, scores, index = rewards_of(mask)
    coefficient = objective.divergence.coefficient
    shaped = scores - coefficient * (old - ref) * mask
    control = {"type": "fixed", "kl_coef": coefficient}
    config = {"use_kl_in_reward": True, "kl_penalty": "kl", "kl_ctrl": control}
    estimate = core.get_adv_estimator_fn(f"rlproof:{name}")
    found, _ = estimate(shaped, mask.long(), config=OmegaConf.create(config), index=index)
    groups = [int(one[1:]) for one in index]
    wanted = objective.advantages(reward, groups, rollout=Rollout(old, mask.double(), ref))
    wanted = wanted if wanted.ndim == 2 else wanted[:, None] * mask
    assert float((found - wanted).abs().max()) < 1e-12


@pytest.mark.parametrize(
    ("name", "config", "message"),
    [
        ("gdpo", {}, "several rewards of a completion apart"),
        ("dapo", {"use_kl_in_reward": True}, "which adds a divergence"),
        ("rloo", {}, "use_kl_in_reward is None; expected True"),
        ("rloo", {"use_kl_in_reward": True, "kl_penalty": "low_var_kl"}, "expected 'kl' or 'k1'"),
        ("rloo", {"use_kl_in_reward": True, "kl_penalty": "kl",
                  "kl_ctrl": {"type": "adaptive"}}, "kl_ctrl.type is 'adaptive'"),
        ("rloo", {"use_kl_in_reward": True, "kl_penalty": "kl",
                  "kl_ctrl": {"type": "fixed", "kl_coef": 0.1}}, "kl_coef is 0.1; expected 0.05"),
    ],
)  # fmt: skip
def test_advantages_that_verl_cannot_serve_are_refused(core, name, config, message):
    from omegaconf import OmegaConf

    mask = made()[3]
    _, scores, index = rewards_of(mask)
    estimate = core.get_adv_estimator_fn(f"rlproof:{name}")
    with pytest.raises(ConfigError, match=message):
        estimate(scores, mask, config=OmegaConf.create(config), index=index)


def test_a_row_that_ends_in_an_injected_token_keeps_its_reward(hooks):
    """The reward stands on a slot that the mask leaves out: the token before it has it."""
    import torch

    objective = OBJECTIVES["reinforce++"].objective
    how = Advantage(baseline="none", scale="none", discount=0.5)
    scores = torch.tensor([[0.0, 0.0, 4.0], [0.0, 2.0, 0.0]])
    mask = torch.tensor([[1, 1, 0], [1, 1, 0]])
    control = {"type": "fixed", "kl_coef": objective.divergence.coefficient}
    from omegaconf import OmegaConf

    config = {"use_kl_in_reward": True, "kl_penalty": "kl", "kl_ctrl": control}
    found, _ = hooks.advantage_estimator(objective.but(advantage=how))(
        scores, mask, config=OmegaConf.create(config), index=np.array(["a", "b"])
    )
    assert found.tolist() == [[2.0, 4.0, 0.0], [1.0, 2.0, 0.0]]


# ---------------------------------------------------------------- real training


def trained(folder, *words, **environment):
    """What verl's worker trained of every published objective."""
    folder.mkdir()
    modules = "platform_cpu,rlproof.integrations.verl"
    done = subprocess.run(
        [sys.executable, str(HERE / "objectives.py"), str(folder), *words],
        env={**os.environ, "VERL_USE_EXTERNAL_MODULES": modules,
             "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path]), **environment},
        capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {one["name"]: one for one in found}


def test_every_published_objective_trains_or_is_refused(tmp_path):
    """Four updates each; the norm of the first gradient does not depend on the cut."""
    whole, cut = trained(tmp_path / "a"), trained(tmp_path / "b", "cut")
    refused = {name: said["refused"] for name, said in cut.items() if "refused" in said}
    assert set(refused) == {*REFUSED, *NEEDS_WHOLE, "gdpo"}
    assert {name for name, said in whole.items() if "refused" in said} == {*REFUSED, "gdpo"}
    assert list(cut) == list(whole) == list(OBJECTIVES)
    for name in set(cut) - set(refused):
        assert len(cut[name]["norms"]) == 4
        assert cut[name]["norms"][0] > 1e-3
        assert cut[name]["norms"][0] == pytest.approx(whole[name]["norms"][0], rel=1e-5)


def test_a_record_names_the_objective(tmp_path):
    path = tmp_path / "steps.jsonl"
    recorded = {"RLPROOF_RECORD": str(path), "RLPROOF_EVERY": "1", "RLPROOF_UPDATES": "4"}
    trained(tmp_path / "a", "cut", "only", "gspo", **recorded)
    seen = inspect_path(str(path), ())
    assert seen.findings == ()
    assert "gspo" in seen.said[0]
