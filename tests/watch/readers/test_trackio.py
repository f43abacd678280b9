"""trackio's store: as trackio writes it where it is installed, and the same schema by hand.

`SCHEMA` is the table of trackio 0.43.0 with its index, compared with a file which that wrote;
`OLD` is the one of before 0.24, from the migration in the same release.
"""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib.util import find_spec

import pytest

from rlproof.errors import ConfigError
from rlproof.watch.command import follow_path, inspect_path
from rlproof.watch.readers.items import MetricsRow, Unread
from rlproof.watch.readers.opening import open_source

SCHEMA = """
CREATE TABLE metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL,
    timestamp TEXT NOT NULL, run_name TEXT NOT NULL, step INTEGER NOT NULL, metrics TEXT NOT NULL,
    log_id TEXT, space_id TEXT);
CREATE INDEX idx_metrics_run_step ON metrics(run_id, step);
"""
OLD = """
CREATE TABLE metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, timestamp TEXT NOT NULL,
    run_name TEXT NOT NULL, step INTEGER NOT NULL, metrics TEXT NOT NULL);
"""
WRITE = """
import math, trackio
for name, start in (("first", 0.0), ("second", 0.5)):
    trackio.init(project="tiny", name=name)
    for step in range(3):
        values = {"reward": start + step / 4, "kl": math.nan, "inner": {"a": 1}, "note": "text"}
        trackio.log(values | {"hist": trackio.Histogram([1, 2, 3])})
    trackio.finish()
"""
HISTOGRAM = {"_type": "trackio.histogram", "bins": [1, 2], "values": [3], "total": 3}


def insert(store, run, rows, old=False):
    for step, values in rows:
        text = values if isinstance(values, str) else json.dumps(values)
        columns = "timestamp, run_name, step, metrics" + ("" if old else ", run_id")
        entry = ("2026-12-02", run, step, text, *(() if old else ("id of " + run,)))
        marks = ", ".join("?" * len(entry))
        store.execute(f"INSERT INTO metrics ({columns}) VALUES ({marks})", entry)
    store.commit()


def by_hand(path, old=False, journal="WAL", **runs):
    with closing(sqlite3.connect(path)) as store:
        store.execute(f"PRAGMA journal_mode = {journal}")
        store.executescript(OLD if old else SCHEMA)
        for run, rows in runs.items():
            insert(store, run, rows, old)
    return path


def runs():
    return {
        name: [
            (step, {"reward": start + step / 4, "kl": "NaN", "inner": {"a": 1}, "note": "text",
                    "hist": HISTOGRAM})
            for step in range(3)
        ]
        for name, start in (("first", 0.0), ("second", 0.5))
    }  # fmt: skip


@pytest.fixture(params=["trackio", "new", "old"])
def project(request, tmp_path):
    if request.param != "trackio":
        return by_hand(tmp_path / "tiny.db", old=request.param == "old", **runs())
    if find_spec("trackio") is None:
        pytest.skip("trackio is not installed")
    subprocess.run(
        [sys.executable, "-c", WRITE], check=True, capture_output=True, timeout=120,
        env=os.environ | {"TRACKIO_DIR": str(tmp_path), "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    return tmp_path / "tiny.db"


def items(path, wait=None):
    return list(open_source(str(path), wait).items())


def rewards(path):
    return [(item.step, item.values["reward"]) for item in items(path)]


FIRST = [(0, 0.0), (1, 0.25), (2, 0.5)]
SECOND = [(0, 0.5), (1, 0.75), (2, 1.0)]


def test_the_last_run_of_a_project_or_the_one_named(project):
    assert rewards(project) == SECOND
    assert rewards(f"{project}#second") == SECOND
    assert rewards(f"{project}#first") == FIRST
    assert rewards(f"{project.parent}#first") == FIRST
    assert rewards(project.parent) == SECOND
    assert open_source(str(project)).kind == "trackio run second, the last of 2"
    assert open_source(f"{project}#first").kind == "trackio run first"


def test_numbers_are_read_and_media_and_texts_are_not(project):
    row = items(project)[0]
    assert isinstance(row, MetricsRow)
    assert sorted(row.values) == ["inner/a", "kl", "reward"]
    assert row.values["kl"] != row.values["kl"]


def test_reading_leaves_the_folder_as_it_was(project):
    before = {p.name: p.read_bytes() for p in project.parent.iterdir()}
    assert len(items(project)) == 3
    assert {p.name: p.read_bytes() for p in project.parent.iterdir()} == before


def test_a_run_by_its_id(tmp_path):
    path = by_hand(tmp_path / "tiny.db", **runs())
    assert rewards(f"{path}#id of first") == FIRST


def test_runs_that_log_in_turns_and_more_rows_than_a_page(tmp_path):
    path = by_hand(tmp_path / "tiny.db")
    with closing(sqlite3.connect(path)) as store:
        store.executemany(
            "INSERT INTO metrics (timestamp, run_id, run_name, step, metrics) "
            "VALUES ('', ?, ?, ?, ?)",
            [("ab"[k % 2], "ab"[k % 2], k // 2, json.dumps({"reward": k})) for k in range(5000)],
        )
        store.commit()
    assert rewards(f"{path}#a") == [(k, 2 * k) for k in range(2500)]
    assert rewards(f"{path}#b") == [(k, 2 * k + 1) for k in range(2500)]


def test_the_step_of_transformers_counts_before_the_number_of_the_call(tmp_path):
    rows = [(k, {"train/reward": 0.5, "train/global_step": 10 * (k + 1)}) for k in range(2)]
    path = by_hand(tmp_path / "tiny.db", run=rows)
    assert [item.step for item in items(path)] == [10, 20]


def test_rows_that_are_no_metrics_are_named(tmp_path):
    path = by_hand(tmp_path / "tiny.db", run=[(0, "{"), (1, "[1]"), (2, {"reward": 1})])
    broken, other, row = items(path)
    assert "no JSON" in broken.reason
    assert "no object" in other.reason
    assert row == MetricsRow(2, {"reward": 1}, 3)


def test_a_project_that_is_being_written(tmp_path):
    """The log of writes beside the file counts, and stays."""
    path = by_hand(tmp_path / "tiny.db")
    with closing(sqlite3.connect(path)) as store:
        insert(store, "run", runs()["first"])
        assert os.path.getsize(f"{path}-wal")
        assert rewards(path) == FIRST
        insert(store, "run", [(3, {"reward": 2})])
    assert rewards(path) == [*FIRST, (3, 2)]


def test_a_project_without_a_run_has_nothing_to_check(tmp_path):
    path = by_hand(tmp_path / "tiny.db")
    assert items(path) == []
    assert inspect_path(str(path), ()).exit_code == 5


@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
def test_a_run_is_followed(tmp_path, journal):
    path = by_hand(tmp_path / "tiny.db", journal=journal)
    with closing(sqlite3.connect(path)) as store:
        later = iter([runs()["first"], [(3, {"reward": 2})], []])

        def wait():
            rows = next(later)
            insert(store, "run", rows)
            return bool(rows)

        told = [(i.step, i.values["reward"]) for i in open_source(str(path), wait).items()]
    assert told == [*FIRST, (3, 2)]


def test_following_ends_when_nothing_comes(tmp_path):
    path = by_hand(tmp_path / "tiny.db", **runs())
    assert follow_path(str(path), (), 0.0, lambda text: None, 80).rows == 3


def test_a_folder_of_several_projects_asks_for_one(tmp_path):
    for name in ("one", "two"):
        by_hand(tmp_path / f"{name}.db", **runs())
    with pytest.raises(ConfigError, match=r"2 trackio projects; name one of one\.db, two\.db"):
        open_source(str(tmp_path))


def test_other_logs_in_the_folder_are_read_as_before(tmp_path):
    by_hand(tmp_path / "tiny.db", **runs())
    (tmp_path / "tiny_system.parquet").write_bytes(b"trackio's own export")
    assert rewards(tmp_path) == SECOND
    (tmp_path / "tiny_system.parquet").unlink()
    (tmp_path / "folder.db").mkdir()
    (tmp_path / "a.jsonl").write_text('{"step": 1, "reward": 3}\n')
    assert MetricsRow(1, {"step": 1, "reward": 3}, 1) in items(tmp_path)


def test_the_state_of_the_trainer_beside_a_project_is_read_as_before(tmp_path):
    by_hand(tmp_path / "tiny.db", **runs())
    (tmp_path / "trainer_state.json").write_text('{"log_history": [{"step": 1, "reward": 3}]}')
    assert rewards(tmp_path) == [(1, 3)]
    assert rewards(f"{tmp_path}#first") == FIRST


def test_no_such_run(tmp_path):
    path = by_hand(tmp_path / "tiny.db", **runs())
    with pytest.raises(ConfigError, match="no run 'third' in this project; its last runs: first, "):
        open_source(f"{path}#third")
    (tmp_path / "sub").mkdir()
    with pytest.raises(ConfigError, match="no trackio project in this folder"):
        open_source(f"{tmp_path / 'sub'}#first")
    with pytest.raises(ConfigError, match="no such file"):
        open_source(f"{tmp_path / 'absent.db'}#first")


def test_a_path_with_a_number_sign_is_a_path(tmp_path):
    (tmp_path / "a#b.jsonl").write_text('{"step": 1, "reward": 3}\n')
    assert rewards(tmp_path / "a#b.jsonl") == [(1, 3)]
    assert rewards(by_hand(tmp_path / "c#d?%.db", **runs())) == SECOND


def test_foreign_and_broken_files_are_usage_errors(tmp_path):
    path = tmp_path / "foreign.db"
    with closing(sqlite3.connect(path)) as store:
        store.execute("CREATE TABLE trials (id INTEGER)")
    with pytest.raises(ConfigError, match="none of trackio: its table metrics lacks id, metrics"):
        open_source(str(path))
    (tmp_path / "text.db").write_text("no database at all")
    with pytest.raises(ConfigError, match="no SQLite file"):
        open_source(str(tmp_path / "text.db"))
    whole = by_hand(tmp_path / "tiny.db", **runs()).read_bytes()
    for kept in (16, 100, 4000):
        (tmp_path / "cut.db").write_bytes(whole[:kept])
        with pytest.raises(ConfigError, match=r"cut\.db: can't be read|none of trackio"):
            open_source(str(tmp_path / "cut.db"))


def test_damage_in_the_middle(tmp_path):
    """Found while opening; what happens to the file after that is named as a row."""
    path = by_hand(tmp_path / "tiny.db")
    with closing(sqlite3.connect(path)) as store:
        insert(store, "run", [(k, {"reward": k, "note": "x" * 500}) for k in range(3000)])
    source = open_source(str(path))
    raw = bytearray(path.read_bytes())
    middle = len(raw) // 2 // 4096 * 4096
    raw[middle : middle + 8192] = bytes(8192)
    path.write_bytes(raw)
    found = list(source.items())
    assert isinstance(found[-1], Unread)
    assert "can't be read" in found[-1].reason
    assert {type(item) for item in found[:-1]} == {MetricsRow}
    assert 1000 < len(found) < 3000
    with pytest.raises(ConfigError, match="can't be read as trackio's store"):
        open_source(str(path))


def test_a_file_that_is_written_to_while_it_is_read(tmp_path):
    path = by_hand(tmp_path / "tiny.db", **runs())
    source = open_source(str(path)).items()
    assert next(source).step == 0
    with closing(sqlite3.connect(path)) as store:
        insert(store, "second", [(3, {"reward": 2})])
    assert "written to while it was read" in list(source)[-1].reason
