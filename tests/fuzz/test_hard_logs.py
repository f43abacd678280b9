"""Logs that would fill the memory, or never end, if they were taken at their word."""

from __future__ import annotations

import io
import os
import random
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlproof.errors import ConfigError
from rlproof.watch.command import follow_path, inspect_path
from rlproof.watch.readers import extras, state, tail
from rlproof.watch.readers.items import Item, Unread
from rlproof.watch.readers.opening import open_source

MB = 1 << 20
LINES = {
    "a.jsonl": (b'{"loss": "', b"x", b'"}\n{"loss": 1}\n'),
    "a.log": (b"{'loss': '", b"x", b"'}\n{'loss': 1}\n"),
    "a.csv": (b"loss,step\n1,2\n", b"1,", b"\n1,3\n"),
    "a.rlproof.jsonl": (b'{"step":0,"loss":"', b"x", b'"}\n{"loss": 1}\n'),
}
"""A line that is too long, and after it one that is not."""


def written(path: Path, parts: Iterator[bytes]) -> Path:
    with path.open("wb") as file:
        file.writelines(parts)
    return path


def long_line(folder: Path, name: str, megabytes: int) -> Path:
    start, middle, end = LINES[name]
    block = middle * (MB // len(middle))
    return written(folder / name, iter([start, *[block] * megabytes, end]))


def inspected(path: Path) -> tuple[int, int, str]:
    """Exit code, peak memory in MB and output of `rlproof inspect` in a process of its own."""
    code = (
        "import re, sys\nfrom rlproof.cli import main\n"
        "try: main(['inspect', sys.argv[1]])\n"
        "except SystemExit as ended: print('EXIT', ended.code)\n"
        "print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read()).group())\n"
    )
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, timeout=300, check=False, text=True)
    assert "Traceback" not in done.stderr
    words = done.stdout.split()
    return int(words[words.index("EXIT") + 1]), int(words[-1]) // 1024, done.stdout


linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read of /proc")


@linux
@pytest.mark.slow
@pytest.mark.parametrize("name", LINES)
def test_a_line_of_64_mb_takes_no_memory(name: str, tmp_path: Path) -> None:
    """Nothing of it is kept beyond 16 MB, held twice for a moment."""
    (tmp_path / "short.jsonl").write_text('{"loss": 1}\n')
    _, usual, _ = inspected(tmp_path / "short.jsonl")
    code, peak, said = inspected(long_line(tmp_path, name, 64))
    assert code == 0
    assert "of more than 16 MB" in said
    assert peak < usual + 50


@linux
@pytest.mark.slow
def test_lists_in_a_line_take_some_hundred_mb(tmp_path: Path) -> None:
    """The worst that 15 MB of JSON can be: five million lists of 56 bytes, and pointers to them."""
    path = written(tmp_path / "a.jsonl", iter([b'{"a":[', *[b"[]," * (MB // 3)] * 15, b"[]]}\n"]))
    code, peak, _ = inspected(path)
    assert code == 5
    assert peak < 700


def items(path: Path) -> list[Item]:
    return list(open_source(str(path)).items())


@pytest.mark.parametrize("name", LINES)
def test_the_lines_after_a_long_one_are_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "PLAIN", 1 << 18)
    path = long_line(tmp_path, name, 1)
    (unread,) = [item for item in items(path) if isinstance(item, Unread)]
    assert "of more than 16 MB" in unread.reason
    assert inspect_path(str(path), ()).rows == (2 if name == "a.csv" else 1)
    assert follow_path(str(path), (), 0.0, lambda text: None, 80).rows == (1 + (name == "a.csv"))


def test_a_record_may_be_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of ours holds a whole group of long completions."""
    monkeypatch.setattr(tail, "PLAIN", 10)
    (tmp_path / "a.jsonl").write_text('{"rlproof":1,"step":0,"loss":0.5}\n{"loss": 0.25}\n')
    assert [type(item).__name__ for item in items(tmp_path / "a.jsonl")] == [
        "RecordedStep", "Unread",
    ]  # fmt: skip


def test_lines_are_the_same_whatever_their_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts of a block, whole blocks and several of them, against `bytes.split`."""
    monkeypatch.setattr(tail, "_BLOCK", 8)
    rng = random.Random(0)
    for _ in range(50):
        raw = bytes(rng.choice(b"ab \n\r") for _ in range(rng.randrange(60)))
        (tmp_path / "a").write_bytes(raw)
        lines = enumerate(raw.split(b"\n"), 1)
        expected = [(number, line.strip()) for number, line in lines if line.strip()]
        assert list(tail.lines(str(tmp_path / "a"))) == expected
        assert list(tail.lines(str(tmp_path / "a"), lambda: False)) == expected


@pytest.mark.parametrize("text", ['1,"2\n' + "3,4\n" * 40_000, '"1\n' + '","\n' * 40_000])
def test_a_quote_that_is_never_closed_does_not_hold_the_file(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlproof.watch.readers.table.PLAIN", 10_000)
    (tmp_path / "a.csv").write_text("step,loss\n" + text)
    found = items(tmp_path / "a.csv")
    assert any(isinstance(item, Unread) and "row of more than" in item.reason for item in found)


def test_a_completion_in_a_table_may_be_long(tmp_path: Path) -> None:
    """Python's reader stops at 131,072 characters of a cell, unless it is told otherwise."""
    (tmp_path / "a.csv").write_text("completion,reward\n" + "x" * 200_000 + ",1\n")
    (sample,) = items(tmp_path / "a.csv")
    assert not isinstance(sample, Unread)
    assert sample.length == 200_000  # type: ignore[union-attr]


def test_a_large_trainer_state_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_MOST", 1000)
    (tmp_path / "trainer_state.json").write_text('{"log_history": [' + "{}," * 400 + "{}]}")
    (item,) = items(tmp_path)
    assert isinstance(item, Unread)
    assert "larger than" in item.reason


def _parquet(path: Path, rows: int) -> Path:
    """A text of 1 MB that every row points to."""
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    texts = arrow.DictionaryArray.from_arrays(
        arrow.array([0] * rows, arrow.int32()), arrow.array(["x" * MB])
    )
    table = arrow.table({"completion": texts, "reward": arrow.array([1.0] * rows)})
    parquet.write_table(table, path)
    return path


def test_a_small_parquet_file_of_large_rows_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _parquet(tmp_path / "a.parquet", 100_000)
    monkeypatch.setattr(extras, "_ALWAYS", 20 * MB)
    monkeypatch.setattr(extras, "_FOLD", 1)
    assert path.stat().st_size < MB
    *rows, last = items(path)
    assert len(rows) == 20
    assert isinstance(last, Unread)
    assert "times its size" in last.reason


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_parquet_file_is_named(seed: int, tmp_path: Path) -> None:
    """Its pages, its footer, its length."""
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rng, sink = random.Random(seed), io.BytesIO()
    entries = [{"step": n, "reward": n / 7, "completion": f"text {n}"} for n in range(3000)]
    parquet.write_table(arrow.Table.from_pylist(entries), sink, row_group_size=500)
    raw = bytearray(sink.getvalue())
    start = (4, len(raw) - 400, 4)[seed % 3]
    for place in range(start, len(raw) - (8 if seed % 3 != 1 else 0), 97):
        raw[place] ^= 1 << rng.randrange(8)
    (tmp_path / "a.parquet").write_bytes(raw[: len(raw) // 2] if seed % 3 == 2 else raw)
    found = items(tmp_path / "a.parquet")
    assert isinstance(found[-1], Unread)
    assert "Parquet" in found[-1].reason or "can't be read" in found[-1].reason
    inspect_path(str(tmp_path / "a.parquet"), ())


def test_bits_of_a_small_parquet_file(tmp_path: Path) -> None:
    """Found by coverage: `ArrowNotImplementedError` is neither of the errors that were expected.

    Every third, of the last 300 bytes: the schema and the rest of the footer.
    """
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    sink = io.BytesIO()
    parquet.write_table(arrow.table({"step": [1, 2], "reward": [0.5, 1.0]}), sink)
    raw, reasons = sink.getvalue(), set()
    for bit in range(8 * (len(raw) - 300), 8 * len(raw), 3):
        changed = bytearray(raw)
        changed[bit // 8] ^= 1 << bit % 8
        (tmp_path / "a.parquet").write_bytes(changed)
        reasons |= {item.reason for item in items(tmp_path / "a.parquet")
                    if isinstance(item, Unread)}  # fmt: skip
    assert len(reasons) > 5
    assert any("not implemented" in reason for reason in reasons)


def test_a_value_of_a_store_that_is_a_gigabyte_of_zeros(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    store = sqlite3.connect(path)
    store.execute(
        "CREATE TABLE metrics (id INTEGER PRIMARY KEY, run_id TEXT, run_name TEXT, step, metrics)"
    )
    store.execute("INSERT INTO metrics VALUES (1, 'a', 'n', 1, zeroblob(100000000))")
    store.commit()
    store.close()
    (item,) = items(path)
    assert isinstance(item, Unread)


def test_a_message_of_wandb_without_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames that go on: they were added to each other, in a time that grew with the square."""
    monkeypatch.setattr(extras, "_MOST", 100_000)
    with (tmp_path / "a.wandb").open("wb") as file:
        file.write(b":W&B" + struct.pack("<HB", 0xBEE1, 0))
        for block in range(50):
            size = 32768 - 7 - (7 if not block else 0)
            file.write(struct.pack("<IHB", 0, size, 3 if block else 2) + bytes(size))
    assert list(extras.framed(str(tmp_path / "a.wandb"))) == []


def test_a_file_that_is_deleted_while_it_is_followed(tmp_path: Path) -> None:
    for name in ("a.jsonl", "trainer_state.json"):
        path = tmp_path / name
        path.write_text('{"log_history": [{"step": 1, "loss": 1}], "loss": 1}\n')
        looks = iter(range(3))

        def wait(path: Path = path, looks: Iterator[int] = looks) -> bool:
            path.unlink(missing_ok=True)
            return next(looks, None) is not None

        assert len(list(open_source(str(path), wait).items())) == 1


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.log")
    with pytest.raises(ConfigError, match="not a regular file"):
        open_source(str(tmp_path / "run.log"))
