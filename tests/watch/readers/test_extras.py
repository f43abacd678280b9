"""Formats of other packages, written by those packages. Skipped where one is missing."""

import struct

import pytest

from rlproof.watch.readers.extras import framed
from rlproof.watch.readers.items import MetricsRow, Sample, Unread
from rlproof.watch.readers.opening import open_source


def items(path):
    return list(open_source(str(path)).items())


def test_parquet_of_completions(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "completions").mkdir()
    table = arrow.Table.from_pylist(
        [
            {"step": 1, "prompt": "a", "completion": f"text {i}", "good": 1.0, "my_reward": i / 2,
             "advantage": 0.5 - i}
            for i in range(3000)
        ]
    )  # fmt: skip
    parquet.write_table(table, tmp_path / "completions" / "completions_00001.parquet")
    found = items(tmp_path)
    assert len(found) == 3000
    assert {type(item) for item in found} == {Sample}
    assert (found[2].reward, found[2].advantage, found[2].where) == (1.0, -1.5, 3)


def test_a_parquet_file_that_is_none(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and no more")
    [found] = items(tmp_path / "a.parquet")
    assert isinstance(found, Unread)
    assert "no Parquet" in found.reason


@pytest.mark.filterwarnings("ignore")
def test_tensorboard_events(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(tmp_path))
    for step in range(3):
        for tag, value in (("train/reward", 0.25 * step), ("train/loss", -0.5)):
            summary = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
            writer.add_event(Event(step=step, summary=summary))
    writer.close()
    found = items(tmp_path)
    assert [(i.step, dict(i.values)) for i in found] == [
        (step, {"train/reward": 0.25 * step, "train/loss": -0.5}) for step in range(3)
    ]


def frames(messages):
    """A `.wandb` file as wandb 0.31 writes it: LevelDB's log, after a header of seven bytes."""
    raw = b":W&B" + struct.pack("<HB", 0xBEE1, 0)
    for message in messages:
        first = True
        while message or first:
            left = 32768 - len(raw) % 32768
            if left < 7:
                raw, left = raw + bytes(left), 32768
            part, message = message[: left - 7], message[left - 7 :]
            kind = (1 if first else 4) if not message else (2 if first else 3)
            raw += struct.pack("<IHB", 0, len(part), kind) + part
            first = False
    return raw


def test_messages_across_the_blocks_of_a_log(tmp_path):
    sizes = (10, 32742, 1, 70000, 5, 32768, 0, 3)  # the second leaves 2 bytes of its block
    messages = [bytes([i + 1]) * size for i, size in enumerate(sizes)]
    (tmp_path / "run.wandb").write_bytes(frames(messages))
    assert list(framed(str(tmp_path / "run.wandb"))) == messages
    (tmp_path / "run.wandb").write_bytes(frames(messages)[:-2])
    assert list(framed(str(tmp_path / "run.wandb"))) == messages[:-1]
    (tmp_path / "run.wandb").write_bytes(b"something else")
    assert list(framed(str(tmp_path / "run.wandb"))) == []


@pytest.mark.filterwarnings("ignore")
def test_an_offline_run_of_wandb(tmp_path):
    pytest.importorskip("wandb")
    from wandb.proto import wandb_internal_pb2 as messages

    records = []
    for step in range(2):
        record = messages.Record()
        record.history.step.num = step
        item = record.history.item.add()
        item.key, item.value_json = "reward", str(0.5 * step)
        records.append(record.SerializeToString())
    (tmp_path / "run-1.wandb").write_bytes(
        frames([messages.Record().SerializeToString(), *records])
    )
    found = items(tmp_path / "run-1.wandb")
    assert [(i.step, dict(i.values)) for i in found] == [(0, {"reward": 0}), (1, {"reward": 0.5})]
    assert {type(i) for i in found} == {MetricsRow}
