"""TRL's trainer on objectives of ours: the same weights as its own loss gives, where it has one."""

import contextlib
import io
from dataclasses import replace

import pytest
from tests.support import trl_runs

from rlproof.errors import ConfigError
from rlproof.faults.model import Severity
from rlproof.integrations.trl import record_steps, use_objective
from rlproof.space.published import OBJECTIVES
from rlproof.watch.command import inspect_path

pytest.importorskip("trl", reason="needs pip install 'rlproof[trl]'")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
REFUSED = {
    "rloo": "divergence.place is 'reward'",
    "reinforce++": "divergence.place is 'token-reward'",
    "grpo-tis": "corrects for the sampler",
    "icepop": "corrects for the sampler",
    "seq-mask-tis": "corrects for the sampler",
    "prompt-mean": "needs whole groups in a micro-batch",
}
"""Objectives that TRL's batches can't serve, and why."""


def trained(folder, objective=None, records=None, **settings):
    folder.mkdir(exist_ok=True)
    with contextlib.redirect_stdout(io.StringIO()):
        trainer = trl_runs.trainer(folder, **settings)
        if objective is not None:
            use_objective(trainer, objective)
        if records:
            record_steps(trainer, records, every=1)
        trainer.train()
    return trainer


def apart(one, other):
    """The largest difference of any weight."""
    pairs = zip(one.model.parameters(), other.model.parameters(), strict=True)
    return max(float((a - b).abs().max()) for a, b in pairs)


def as_trl_scales(objective):
    """TRL divides by the sample std + 1e-4."""
    how = replace(objective.advantage, scale="sample-std", eps=1e-4, eps_place="std + eps")
    return objective.but(advantage=how)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("grpo", {"loss_type": "grpo", "beta": 0.04, "use_bias_correction_kl": False}),
        ("dapo", {"loss_type": "dapo", "beta": 0.0, "epsilon_high": 0.28, "num_iterations": 2}),
    ],
)
def test_weights_are_those_of_trls_own_loss(tmp_path, name, settings):
    """Three updates of plain descent; float32 rounds at 1e-7 of weights about 1."""
    objective = as_trl_scales(OBJECTIVES[name].objective)
    settings |= {"max_steps": 3, "learning_rate": 0.1, "optim": "sgd"}
    own = trained(tmp_path / "own", **settings)
    ours = trained(tmp_path / "ours", objective, **settings)
    assert apart(own, trl_runs.trainer(tmp_path / "start")) > 1e-3
    assert apart(own, ours) < 2e-6


def test_the_gradient_does_not_depend_on_the_cut(tmp_path):
    """A mean over the tokens of the update: TRL's own `bnpo` means over each micro-batch."""
    objective = as_trl_scales(OBJECTIVES["bnpo"].objective)
    settings = {"max_steps": 1, "beta": 0.04, "learning_rate": 1e-3}
    cut = {"per_device_train_batch_size": 8, "gradient_accumulation_steps": 2}
    whole = {"per_device_train_batch_size": 16, "gradient_accumulation_steps": 1}
    one = trained(tmp_path / "a", objective, **settings, **cut)
    other = trained(tmp_path / "b", objective, **settings, **whole)
    assert one.state.log_history[0]["grad_norm"] == pytest.approx(
        other.state.log_history[0]["grad_norm"], rel=1e-5
    )


@pytest.mark.parametrize("name", [name for name in OBJECTIVES if name not in REFUSED])
def test_a_published_objective_trains(tmp_path, name):
    trainer = trained(tmp_path, name, max_steps=2, num_iterations=2)
    assert all(bool(p.isfinite().all()) for p in trainer.model.parameters())
    assert trainer.state.log_history[0]["grad_norm"] > 0


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_served_is_refused(tmp_path, name):
    with pytest.raises(ConfigError, match=f"objective '.*': .*{REFUSED[name]}"):
        use_objective(trl_runs.trainer(tmp_path), name)


def test_records_name_the_objective(tmp_path):
    path = tmp_path / "steps.jsonl"
    trained(tmp_path, "grpo", path, num_iterations=2)
    seen = inspect_path(str(path), ("objective=grpo",))
    assert [f for f in seen.findings if f.severity is not Severity.NOTE] == []
    assert any("grpo" in line for line in seen.said)


@pytest.mark.parametrize(
    ("objective", "settings", "message"),
    [
        ("gpro", {}, "objective 'gpro': unknown"),
        ("grpo", {"beta": 0.0}, "beta is 0.0: set it above 0"),
        ("dapo", {"temperature": 0.7}, "samples at temperature 0.7"),
        ("dapo", {"steps_per_generation": 3}, "steps_per_generation is 3"),
    ],
)
def test_a_contradiction_is_refused(tmp_path, objective, settings, message):
    trainer = trl_runs.trainer(tmp_path, **settings)
    with pytest.raises(ConfigError, match=message):
        use_objective(trainer, objective)


def test_another_object_is_refused():
    with pytest.raises(ConfigError, match="object has no _generate_and_score"):
        use_objective(object(), "grpo")
