"""Every format gives the same items, whatever wrote it, and says what it could not read."""

import json

import pytest

from rlproof.errors import ConfigError
from rlproof.watch.readers.items import MetricsRow, RecordedStep, Sample, Unread
from rlproof.watch.readers.opening import open_source
from rlproof.watch.record import Recorder


def items(path):
    return list(open_source(str(path)).items())


def rows(path):
    return [(item.step, dict(item.values)) for item in items(path) if isinstance(item, MetricsRow)]


def test_json_lines(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"step": 3, "loss": 0.5, "note": "x"}\n\n{"loss": 1}\n')
    assert rows(tmp_path / "a.jsonl") == [(3, {"step": 3, "loss": 0.5}), (None, {"loss": 1})]


def test_numbers_that_json_lacks(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        '{"step": 1, "loss": NaN, "kl": -Infinity, "s": "NaN: NaN"}\n'
    )
    [(_, values)] = rows(tmp_path / "a.jsonl")
    assert values["loss"] != values["loss"]
    assert values["kl"] == float("-inf")


def test_a_torn_last_line_is_named_and_the_rest_is_read(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"loss": 0.5}\n{"loss": 0.')
    first, second = items(tmp_path / "a.jsonl")
    assert first == MetricsRow(None, {"loss": 0.5}, 1)
    assert isinstance(second, Unread)
    assert second.where == 2
    assert "torn" in second.reason


def test_a_torn_record_between_whole_ones(tmp_path):
    path = tmp_path / "a.jsonl"
    for step, tear in ((0, True), (1, False)):
        recorder = Recorder(path, every=1)
        recorder.record(step=step, loss=0.5, rewards=[1.0, 2.0])
        recorder.close()
        if tear:
            path.write_bytes(path.read_bytes()[:-20])
    torn, whole = items(path)
    assert isinstance(torn, Unread)
    assert isinstance(whole, RecordedStep)
    assert whole.record.step == 1


def test_a_record_of_a_later_version_is_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"rlproof":9,"step":0}\n')
    [item] = items(tmp_path / "a.jsonl")
    assert item.reason == "a record of version 9, expected 1"


def test_a_record_with_damaged_bytes_is_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        '{"rlproof":1,"step":0,"arrays":{"rewards":{"d":"<f8","s":[2],"b":"AAAA","of":"float64"}}}\n'
    )
    [item] = items(tmp_path / "a.jsonl")
    assert "damaged" in item.reason


def test_verl_s_file_logger(tmp_path):
    line = {"step": 7, "data": {"actor/pg_loss": 0.25, "critic/score/mean": 0.5}}
    (tmp_path / "run.jsonl").write_text(json.dumps(line) + "\n")
    assert rows(tmp_path / "run.jsonl") == [(7, line["data"])]


def test_trainer_state(tmp_path):
    history = [
        {"step": 1, "loss": 0.0, "reward": 0.25, "epoch": 0.1},
        {"step": 1, "eval_loss": 0.3, "eval_reward": 0.5},
        {"step": 2, "loss": 0.1, "reward": 0.5, "epoch": 0.2},
        {"step": 2, "train_runtime": 12.0, "train_loss": 0.05},
    ]
    for folder, length in (("checkpoint-2", 1), ("checkpoint-10", 4)):
        (tmp_path / folder).mkdir()
        document = {"global_step": 2, "log_history": history[:length]}
        (tmp_path / folder / "trainer_state.json").write_text(json.dumps(document))
    source = open_source(str(tmp_path))
    assert (source.kind, source.framework) == ("trainer_state.json", "TRL")
    assert [item.step for item in source.items()] == [1, 2]
    assert rows(tmp_path / "checkpoint-10") == [(1, history[0]), (2, history[2])]


def test_trainer_state_that_is_none(tmp_path):
    (tmp_path / "trainer_state.json").write_text('{"log_history": 3}')
    [item] = items(tmp_path)
    assert item.reason == "no list 'log_history'"


def test_csv(tmp_path):
    (tmp_path / "a.csv").write_text("step,loss,reward,name\n1,0.5,,x\n2,nan,0.25,y\n3,1\n")
    first, second, third = items(tmp_path / "a.csv")
    assert first.values == {"step": 1, "loss": 0.5}
    assert second.values["reward"] == 0.25
    assert third.reason == "2 cells, expected 4"


def test_what_verl_prints(tmp_path):
    (tmp_path / "out.log").write_text(
        "loading the model\n"
        "\x1b[36m(TaskRunner pid=7)\x1b[0m step:3 - critic/score/mean:0.5 - "
        "actor/pg_loss:np.float64(-0.25) - timing_s/gen:1e-05\n"
    )
    values = {"critic/score/mean": 0.5, "actor/pg_loss": -0.25, "timing_s/gen": 1e-5}
    assert rows(tmp_path / "out.log") == [(3, values)]


def test_what_openrlhf_and_trl_print(tmp_path):
    (tmp_path / "out.log").write_text(
        "INFO ✨ Global step 4: {'policy_loss': 0.5, 'kl': nan, 'text': 'x'}\n"
        "{'loss': '0.5', 'reward': 0.25, 'epoch': 0.1}\n"
        "{'not a dictionary\n"
    )
    first, second = items(tmp_path / "out.log")
    assert first.step == 4
    assert first.values["policy_loss"] == 0.5
    assert first.values["kl"] != first.values["kl"]
    assert second.values == {"loss": 0.5, "reward": 0.25, "epoch": 0.1}


def test_a_folder_of_verl_s_dumps_in_the_order_of_steps(tmp_path):
    for step in (10, 9):
        line = {"input": "1+1?", "output": "2", "gts": "2", "score": 1.0}
        (tmp_path / f"{step}.jsonl").write_text(json.dumps(line) + "\n")
    found = items(tmp_path)
    assert [(type(item), item.step) for item in found] == [(Sample, 9), (Sample, 10)]
    assert found[0].reward == 1.0
    assert found[0].prompt == found[1].prompt


def test_trl_s_completions_add_their_reward_columns(tmp_path):
    line = {
        "step": 5, "prompt": [{"role": "user", "content": "1+1?"}],
        "completion": [{"role": "assistant", "content": "2"}],
        "accuracy_reward": 1.0, "format_reward": 0.5, "advantage": 0.7,
    }  # fmt: skip
    (tmp_path / "a.jsonl").write_text(json.dumps(line) + "\n")
    [found] = items(tmp_path / "a.jsonl")
    assert (found.step, found.reward, found.advantage, found.length) == (5, 1.5, 0.7, 1)


def test_a_reward_that_is_missing_is_none(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"prompt": "a", "completion": "b", "reward": null}\n')
    [found] = items(tmp_path / "a.jsonl")
    assert found.reward is None


@pytest.mark.parametrize("name", ["nothing.jsonl", "no/such/folder"])
def test_a_missing_path_is_a_usage_error(tmp_path, name):
    with pytest.raises(ConfigError, match="no such file"):
        open_source(str(tmp_path / name))


def test_a_folder_without_a_log_is_a_usage_error(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"x")
    with pytest.raises(ConfigError, match="no log or dump"):
        open_source(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "package"),
    [("a.parquet", "pyarrow"), ("events.out.tfevents.1", "tensorboard"), ("run.wandb", "wandb")],
)
def test_a_missing_package_is_named_with_what_to_do(tmp_path, monkeypatch, name, package):
    import sys

    for module in [m for m in sys.modules if m.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(ConfigError, match=rf"pip install 'rlproof\[{package}\]'"):
        items(tmp_path / name)
