"""The recorder: any array, one line a record, nothing lost by a crash, nothing raised."""

import math
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import rlproof
from rlproof.errors import ConfigError
from rlproof.watch.record import Recorder
from rlproof.watch.schema import decode

REWARDS = [1.0, 0.0, 1.0, 1.0]
LOGPS = [[-0.5, -1.0], [-0.25, -2.0], [-1.5, -0.125], [-3.0, -0.75]]
MASK = [[1, 1], [1, 0], [1, 1], [1, 1]]


def records(path):
    return [decode(line) for line in path.read_bytes().splitlines()]


def test_nothing_is_done_without_a_path(monkeypatch, tmp_path):
    monkeypatch.delenv("RLPROOF_RECORD", raising=False)
    monkeypatch.chdir(tmp_path)
    assert not rlproof.record(step=0, rewards=REWARDS)
    assert list(tmp_path.iterdir()) == []


def test_the_environment_names_the_file_and_the_interval(monkeypatch, tmp_path):
    monkeypatch.setenv("RLPROOF_RECORD", str(tmp_path / "a.jsonl"))
    monkeypatch.setenv("RLPROOF_EVERY", "3")
    written = [rlproof.record(step=i, rewards=REWARDS) for i in range(7)]
    assert written == [True, False, False] * 2 + [True]
    assert [r.step for r in records(tmp_path / "a.jsonl")] == [0, 3, 6]


def test_a_bad_interval_is_a_usage_error(monkeypatch, tmp_path):
    monkeypatch.setenv("RLPROOF_EVERY", "0")
    with pytest.raises(ConfigError, match="RLPROOF_EVERY is '0'"):
        rlproof.record(step=0, path=tmp_path / "a.jsonl")
    with pytest.raises(ConfigError, match="every is 0"):
        Recorder(tmp_path / "b.jsonl", every=0)


def test_lists_come_back_bit_by_bit(tmp_path):
    path = tmp_path / "a.jsonl"
    rlproof.record(
        step=0, update=1, rewards=REWARDS, groups=2, new_logps=LOGPS, mask=MASK, loss=0.1,
        grad=2.5, objective="grpo", facts={"beta": 0.04}, path=path, every=1,
    )  # fmt: skip
    [record] = records(path)
    assert record.arrays["new_logps"].array().tolist() == LOGPS
    assert record.arrays["mask"].array().tolist() == MASK
    assert (record.update, record.group_size, record.loss, record.grad_norm) == (1, 2, 0.1, 2.5)
    assert record.facts == {"beta": 0.04, "objective": "grpo"}
    assert record.problems == ()


def test_numpy_of_any_type(tmp_path):
    path = tmp_path / "a.jsonl"
    half = np.array(LOGPS, np.float16)
    rlproof.record(step=0, new_logps=half, mask=np.array(MASK, bool), path=path, every=1)
    [record] = records(path)
    logps = record.arrays["new_logps"]
    assert (logps.d, logps.of) == ("<f4", "float16")
    assert logps.array().tolist() == LOGPS  # all are sums of few powers of two
    assert record.arrays["mask"].array().dtype == bool


def test_torch_with_gradients_half_precision_and_strides(tmp_path):
    torch = pytest.importorskip("torch")
    path = tmp_path / "a.jsonl"
    new = torch.tensor(LOGPS, requires_grad=True)
    loss = new.sum()
    loss.backward()
    rlproof.record(
        step=0, new_logps=new, old_logps=new.detach().bfloat16(), ref_logps=new.detach().T.T,
        tokens=torch.tensor(MASK).T, mask=torch.tensor(MASK) > 0, loss=loss, grad=new.grad,
        groups=torch.tensor([0, 0, 1, 1]), rewards=torch.zeros(0), path=path, every=1,
    )  # fmt: skip
    [record] = records(path)
    assert record.problems == ()
    assert record.arrays["new_logps"].array().tolist() == LOGPS
    assert record.arrays["old_logps"].of == "bfloat16"
    assert record.arrays["old_logps"].array().tolist() == LOGPS
    assert record.arrays["tokens"].array().tolist() == np.array(MASK).T.tolist()
    assert record.arrays["grad"].array().tolist() == [[1.0, 1.0]] * 4
    assert record.arrays["rewards"].array().shape == (0,)
    assert record.loss == pytest.approx(sum(map(sum, LOGPS)))
    assert record.arrays["groups"].array().tolist() == [0, 0, 1, 1]


class Duck:
    """What JAX looks like from here: an array that NumPy can read, and no torch."""

    def __init__(self, values):
        self.values = np.array(values, np.float32)
        self.shape = self.values.shape

    def __array__(self, dtype=None, copy=None):
        return self.values

    def __getitem__(self, key):
        return Duck(self.values[key])


def test_anything_with_the_array_protocol(tmp_path):
    rlproof.record(step=0, new_logps=Duck(LOGPS), path=tmp_path / "a.jsonl", every=1)
    [record] = records(tmp_path / "a.jsonl")
    assert record.arrays["new_logps"].array().tolist() == LOGPS


def test_jax_in_either_precision(tmp_path):
    jax = pytest.importorskip("jax")
    new = jax.numpy.array(LOGPS)
    rlproof.record(
        step=0, new_logps=new, old_logps=new.astype(jax.numpy.bfloat16), mask=new < 0,
        loss=new.sum(), path=tmp_path / "a.jsonl", every=1,
    )  # fmt: skip
    [record] = records(tmp_path / "a.jsonl")
    assert record.problems == ()
    assert record.arrays["old_logps"].of == "bfloat16"
    assert record.arrays["old_logps"].array().tolist() == LOGPS
    assert record.loss == sum(map(sum, LOGPS))


def test_rows_of_unequal_length_bring_their_mask(tmp_path):
    rlproof.record(
        step=0, new_logps=[[-1.0, -2.0], [-3.0]], tokens=[[5, 6], [7]], path=tmp_path / "a.jsonl",
        every=1,
    )  # fmt: skip
    [record] = records(tmp_path / "a.jsonl")
    assert record.arrays["new_logps"].array().tolist() == [[-1.0, -2.0], [-3.0, 0.0]]
    assert record.arrays["mask"].array().tolist() == [[1, 1], [1, 0]]


def test_groups_may_have_names(tmp_path):
    rlproof.record(step=0, groups=["b", "a", "b", "a"], path=tmp_path / "a.jsonl", every=1)
    [record] = records(tmp_path / "a.jsonl")
    assert record.arrays["groups"].array().tolist() == [0, 1, 0, 1]


def test_a_large_batch_keeps_its_first_groups(tmp_path):
    recorder = Recorder(tmp_path / "a.jsonl", every=1, max_slots=7)
    recorder.record(step=0, groups=2, rewards=REWARDS, new_logps=LOGPS)
    recorder.close()
    [record] = records(tmp_path / "a.jsonl")
    assert record.rows == 4  # 7 slots hold 3 rows of 2, of which one whole group of 2 is kept
    assert record.arrays["new_logps"].array().tolist() == LOGPS[:2]
    assert record.arrays["rewards"].array().tolist() == REWARDS[:2]


def test_numbers_that_json_lacks(tmp_path):
    rlproof.record(step=0, loss=math.nan, grad=math.inf, path=tmp_path / "a.jsonl", every=1)
    [record] = records(tmp_path / "a.jsonl")
    assert (record.loss, record.grad_norm) == ("nan", "inf")


def test_what_cannot_be_recorded_is_named_and_the_rest_is_kept(tmp_path):
    rlproof.record(
        step=0, rewards=["good", "bad"], new_logps=LOGPS, loss="low", path=tmp_path / "a.jsonl",
        every=1,
    )  # fmt: skip
    [record] = records(tmp_path / "a.jsonl")
    assert [p.split(":")[0] for p in record.problems] == ["loss", "rewards"]
    assert set(record.arrays) == {"new_logps"}


def test_a_failure_warns_once_and_the_run_goes_on(tmp_path):
    recorder = Recorder(tmp_path / "missing" / "a.jsonl", every=1)
    with pytest.warns(RuntimeWarning, match="FileNotFoundError"):
        assert not recorder.record(step=0, rewards=REWARDS)
    assert not recorder.record(step=1, rewards=REWARDS)  # a second warning would be an error


def test_a_full_file_takes_no_more(tmp_path):
    recorder = Recorder(tmp_path / "a.jsonl", every=1, max_bytes=300)
    with pytest.warns(RuntimeWarning, match="has reached 300 bytes"):
        written = [recorder.record(step=i, rewards=REWARDS) for i in range(9)]
    recorder.close()
    assert written == sorted(written, reverse=True)
    assert 0 < len(records(tmp_path / "a.jsonl")) == sum(written) < 9
    assert os.path.getsize(tmp_path / "a.jsonl") <= 301


def test_a_torn_line_is_closed_by_the_next_writer(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"rlproof":1,"step":0,"loss":0.')
    recorder = Recorder(path, every=1)
    recorder.record(step=1, loss=0.5)
    recorder.close()
    first, second = path.read_bytes().splitlines()
    assert first == b'{"rlproof":1,"step":0,"loss":0.'
    assert decode(second).step == 1


def test_a_file_that_was_deleted_is_begun_anew(tmp_path):
    recorder = Recorder(tmp_path / "a.jsonl", every=1)
    recorder.record(step=0, loss=0.5)
    (tmp_path / "a.jsonl").unlink()
    recorder.record(step=1, loss=0.5)
    recorder.close()
    assert [r.step for r in records(tmp_path / "a.jsonl")] == [1]


def test_a_killed_process_loses_nothing(tmp_path):
    path = tmp_path / "a.jsonl"
    program = (
        "import os, rlproof\n"
        f"[rlproof.record(step=i, loss=0.1, path={str(path)!r}, every=1) for i in range(5)]\n"
        "os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    assert [r.step for r in records(path)] == [0, 1, 2, 3, 4]


def test_threads_write_whole_lines(tmp_path):
    recorder = Recorder(tmp_path / "a.jsonl", every=1)
    work = [
        threading.Thread(
            target=lambda: [recorder.record(step=i, new_logps=LOGPS) for i in range(50)]
        )
        for _ in range(4)
    ]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    recorder.close()
    assert sorted(r.step for r in records(tmp_path / "a.jsonl")) == sorted([*range(50)] * 4)


def test_the_rank_goes_into_the_record_and_the_name(monkeypatch, tmp_path):
    monkeypatch.setenv("RANK", "3")
    rlproof.record(step=0, loss=1.0, path=tmp_path / "r{rank}.jsonl", every=1)
    [record] = records(tmp_path / "r3.jsonl")
    assert record.rank == 3


def test_arguments_are_not_changed(tmp_path):
    new = np.array(LOGPS)
    new.flags.writeable = False
    rlproof.record(step=0, new_logps=new, path=tmp_path / "a.jsonl", every=1)
    assert new.tolist() == LOGPS


def test_importing_the_package_loads_nothing_heavy():
    program = (
        "import sys, rlproof\n"
        "assert not {'numpy', 'msgspec', 'rlproof.watch'} & set(sys.modules), 'loaded'\n"
        "rlproof.record\n"
        "assert not {'torch', 'jax'} & set(sys.modules), 'loaded'\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_unknown_names_of_the_package_still_raise():
    with pytest.raises(AttributeError, match="nothing_like_this"):
        rlproof.nothing_like_this  # noqa: B018
