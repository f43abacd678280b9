"""TRL's real GRPOTrainer on a tiny random model: what goes wrong is named, and nothing else is."""

import contextlib
import io

import numpy as np
import pytest
from tests.support import trl_faults, trl_runs

from rlproof.errors import ConfigError
from rlproof.faults.model import Severity
from rlproof.integrations.trl import RecordedSteps, record_steps
from rlproof.watch.command import inspect_path
from rlproof.watch.schema import decode

pytest.importorskip("trl", reason="needs pip install 'rlproof[trl]'")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def trained(folder, kind=None, after=lambda trainer: None, every=1, record=True, **settings):
    """The trainer after its run, and the path of its records."""
    path = folder / "steps.jsonl"
    with contextlib.redirect_stdout(io.StringIO()):
        trainer = trl_runs.trainer(folder, kind, **settings)
        after(trainer)
        if record:
            record_steps(trainer, path, every=every)
        trainer.train()
    return trainer, path


def records(path):
    return [decode(line) for line in path.read_bytes().splitlines()]


def worse_than_notes(path):
    found = inspect_path(str(path), ()).findings
    return {f.rule.code for f in found if f.severity is not Severity.NOTE}


@pytest.mark.parametrize("name", trl_faults.FAULTS)
def test_what_was_planted_is_named(tmp_path, name):
    fault = trl_faults.FAULTS[name]
    _, path = trained(tmp_path, fault.kind(), fault.after, **fault.settings)
    found = worse_than_notes(path)
    assert fault.rules <= found
    assert found <= fault.rules | fault.also


@pytest.mark.parametrize("name", trl_faults.HEALTHY)
def test_a_healthy_run_is_silent(tmp_path, name):
    trainer, path = trained(tmp_path, **trl_faults.HEALTHY[name])
    assert worse_than_notes(path) == set()
    trainer.save_state()
    assert worse_than_notes(tmp_path / "trainer_state.json") == set()


def test_an_adapter_is_recorded_with_the_model_below_as_reference(tmp_path):
    peft = pytest.importorskip("peft")
    adapter = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    _, path = trained(tmp_path, adapter=adapter, learning_rate=1e-2)
    assert worse_than_notes(path) == set()
    anchors = [r.arrays["anchor_logps"].array() for r in records(path) if "rewards" in r.arrays]
    assert len(anchors) == 6
    assert all(np.array_equal(one, anchors[0]) for one in anchors)


def test_the_objective_is_named(tmp_path):
    """TRL's default weighs k3 by the ratio; two updates a batch tell it from the others."""
    _, path = trained(tmp_path, num_iterations=2, max_steps=6)
    said = " ".join(inspect_path(str(path), ()).said)
    assert "−min-clip 0.2 of the token ratio, k3-ratio-weighted · 0.04, sequence-mean × 0.5" in said


def test_training_is_the_same_to_the_bit(tmp_path):
    """Dropout draws numbers: a second pass must not move the generator."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    settings = {"dropout": 0.2, "num_iterations": 2}
    watched, path = trained(tmp_path / "a", **settings)
    alone, _ = trained(tmp_path / "b", record=False, **settings)
    assert records(path)
    for one, other in zip(watched.model.parameters(), alone.model.parameters(), strict=True):
        assert bool((one == other).all())
    assert all(module.training for module in watched.model.modules())


def test_records_are_of_whole_rollouts_and_of_every_micro_batch(tmp_path):
    """Six steps of two micro-batches; every third step is recorded: steps 0 and 3."""
    _, path = trained(tmp_path, every=3)
    found = records(path)
    assert [(r.step, "rewards" in r.arrays) for r in found] == [
        (0, True), (0, False), (0, False), (3, True), (3, False), (3, False),
    ]  # fmt: skip
    assert [r.update for r in found] == [None, 0, 0] * 2
    assert found[0].arrays["tokens"].s[0] == 16
    assert found[1].arrays["grad"].s == found[1].arrays["new_logps"].s
    assert found[0].facts["eos"] == [trl_runs.EOS]
    assert not any(r.problems for r in found)


def test_rollouts_of_several_updates_are_recorded_where_they_begin(tmp_path):
    """A rollout begins at every second step: the first at or after 0, 3 and 6 are 0, 4 and 6."""
    _, path = trained(tmp_path, every=3, num_iterations=2, max_steps=8)
    assert sorted({(r.step, r.update or 0) for r in records(path)}) == [
        (0, 0), (0, 1), (4, 0), (4, 1), (6, 0), (6, 1),
    ]  # fmt: skip


def test_a_failure_to_record_warns_once_and_training_goes_on(tmp_path, monkeypatch):
    from rlproof.integrations.trl import recording

    monkeypatch.setattr(recording, "facts_of", lambda trainer: 1 / 0)
    with pytest.warns(RuntimeWarning, match="was not recorded: ZeroDivisionError") as warned:
        trainer, _ = trained(tmp_path)
    assert trainer.state.global_step == 6
    assert len([w for w in warned if "not recorded" in str(w.message)]) == 1


def test_evaluation_is_not_recorded(tmp_path):
    _, path = trained(
        tmp_path, eval_strategy="steps", eval_steps=1, per_device_eval_batch_size=8, max_steps=2
    )
    assert len(records(path)) == 2 * 3


def test_a_mixin_serves_as_well(tmp_path):
    from trl import GRPOTrainer

    from rlproof.integrations.trl.recording import Session

    class Own(RecordedSteps, GRPOTrainer):
        pass

    path = tmp_path / "own.jsonl"

    def start(trainer):
        trainer.rlproof_session = Session(path, every=2)

    trained(tmp_path, Own, start, record=False)
    assert {r.step for r in records(path)} == {0, 2, 4}


def test_another_object_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="object has no _generate_and_score"):
        record_steps(object(), tmp_path / "a.jsonl")


def test_the_interval_is_checked(tmp_path):
    from rlproof.integrations.trl.recording import Session

    with pytest.raises(ConfigError, match="every is 0"):
        Session(tmp_path / "a.jsonl", 0)
