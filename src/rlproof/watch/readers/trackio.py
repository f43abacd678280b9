"""trackio's local store: one SQLite file a project, read without trackio.

Schemas from trackio 0.43.0, and from before 0.24, when a run had a name and no id. A project holds
several runs and one is read: the one that logged last, or the one named in `project.db#run`.
"""

from __future__ import annotations

import glob
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import quote

import msgspec

from rlproof.errors import ConfigError
from rlproof.watch.readers.items import Item, Listed, MetricsRow, Source, Unread
from rlproof.watch.readers.tail import Wait
from rlproof.watch.readers.values import number, numbers, step_of

MAGIC = b"SQLite format 3\x00"
_PAGE = 1024
_NEEDED = {"id", "run_name", "step", "metrics"}
_DAMAGED = (sqlite3.Error, UnicodeDecodeError, OverflowError)
"""What sqlite3 raises over a damaged file; its own messages may be no text."""
_MOST = 1 << 26
"""Bytes of one value: a few of a file can say that it is a gigabyte of zeros."""
_NAMED = 10
"""Runs named where the one asked for is not there."""


def split(path: str) -> tuple[str, str | None]:
    """`project.db#run` as its two parts; a file that is there with its `#` is a path."""
    file, sign, run = path.rpartition("#")
    return (file, run) if sign and not os.path.exists(path) else (path, None)


def stores(folder: str) -> list[str]:
    """The projects in a folder, sorted."""
    found = sorted(glob.glob(os.path.join(glob.escape(folder), "*.db")))
    return [path for path in found if _is_store(path)]


def _is_store(path: str) -> bool:
    try:
        with closing(_connect(path, live=False)) as store:
            return _columns(store) >= _NEEDED
    except (*_DAMAGED, ConfigError, OSError):
        return False


def source(path: str, run: str | None, wait: Wait | None = None) -> Source:
    """One run of a project; where it is followed, runs that start later are left out.

    Raises:
        ConfigError: no SQLite file, a foreign one, a damaged one, or no such run in it.
    """
    try:
        with closing(_connect(path, wait is not None)) as store:
            missing = _NEEDED - _columns(store)
            if missing:
                raise ConfigError(
                    f"{path}: a SQLite file, but none of trackio: its table metrics "
                    f"lacks {', '.join(sorted(missing))}"
                )
            chosen, kind = _choose(store, path, run)
    except _DAMAGED as error:
        raise ConfigError(
            f"{path}: can't be read as trackio's store ({error}); expected a whole SQLite file"
        ) from None
    return Listed(kind, None, read(path, chosen, wait))


def read(path: str, run: str | None, wait: Wait | None = None) -> Iterator[Item]:
    """The metrics of one run in the order in which they were logged, some at a time.

    Args:
        path: the SQLite file.
        run: its id, or its name in files before trackio 0.24; None reads the run that logs first.
        wait: for a file that is followed.
    """
    guard = wait is None and _still(path)  # nothing keeps a writer from starting meanwhile
    before, last, where = _stamp(path), 0, 0
    with closing(_connect(path, wait is not None)) as store:
        while True:
            try:
                if run is None:
                    run = _last(store)
                rows = _page(store, run, last)
            except _DAMAGED as error:
                if wait is None or not wait():
                    yield Unread(where + 1, f"row {where + 1} can't be read ({error})")
                    return
                continue
            for number, step, text in rows:
                if not isinstance(number, int) or number <= last:  # they would come for ever
                    yield Unread(where + 1, f"row {where + 1}: rows out of order; a damaged file")
                    return
                last, where = number, where + 1
                yield _item(step, text, where)
            if not rows and (wait is None or not wait()):
                break
    if guard and _stamp(path) != before:
        yield Unread(where + 1, "the file was written to while it was read; read it again")


def _connect(path: str, live: bool) -> sqlite3.Connection:
    """For reading only.

    SQLite would leave two files beside one that nobody writes to, and fail in a folder without
    write access, so that such a file is opened as one that stands still.
    """
    with open(path, "rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ConfigError(f"{path}: no SQLite file, expected the store of a trackio project")
    mode = "mode=ro&immutable=1" if not live and _still(path) else "mode=ro"
    store = sqlite3.connect(f"file:{quote(os.path.abspath(path))}?{mode}", uri=True)
    store.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST)
    store.execute("PRAGMA trusted_schema = OFF")
    return store


def _still(path: str) -> bool:
    """Whether nobody has it open: the last writer removes the log of writes beside it."""
    return not os.path.exists(path + "-wal")


def _stamp(path: str) -> tuple[int, int]:
    about = os.stat(path)
    return about.st_mtime_ns, about.st_size


def _columns(store: sqlite3.Connection) -> set[str]:
    """Of the table; a view by its name could compute without an end, and is none."""
    kind = store.execute("SELECT type FROM sqlite_schema WHERE name = 'metrics'").fetchone()
    if kind != ("table",):
        return set()
    return {row[1] for row in store.execute("PRAGMA table_info(metrics)")}


def _key(store: sqlite3.Connection) -> str:
    """The column that tells runs apart."""
    return "run_id" if "run_id" in _columns(store) else "run_name"


def _last(store: sqlite3.Connection) -> str | None:
    """The run of the newest row."""
    row = store.execute(
        f"SELECT {_key(store)} FROM metrics ORDER BY id DESC LIMIT 1"
    ).fetchone()  # fmt: skip
    return None if row is None else row[0]


def _choose(store: sqlite3.Connection, path: str, run: str | None) -> tuple[str | None, str]:
    """The run to read, and what it is for the report."""
    key = _key(store)
    runs = store.execute(
        f"SELECT {key}, MAX(run_name), MAX(id) FROM metrics GROUP BY {key} ORDER BY 3"
    ).fetchall()
    fitting = [one for one in runs if run is None or run in one[:2]]
    if run is not None and not fitting:
        names = ", ".join(str(one[1]) for one in runs[-_NAMED:]) or "none"
        raise ConfigError(f"{path}: no run {run!r} in this project; its last runs: {names}")
    if not fitting:
        return None, "trackio project without a run"
    chosen, name, _ = fitting[-1]
    which = f", the last of {len(fitting)}" if len(fitting) > 1 else ""
    return chosen, f"trackio run {name}{which}"


def _page(store: sqlite3.Connection, run: str | None, last: int) -> list[tuple[int, Any, Any]]:
    """The next rows. The plus keeps SQLite from an index that it would have to sort by."""
    return store.execute(
        f"SELECT id, step, metrics FROM metrics WHERE id > ? AND +{_key(store)} = ? "
        "ORDER BY id LIMIT ?",
        (last, run, _PAGE),
    ).fetchall()


def _item(step: Any, text: Any, where: int) -> Item:
    try:
        entry = msgspec.json.decode(text)
    except (ValueError, TypeError, RecursionError) as error:
        return Unread(where, f"row {where}: metrics that are no JSON ({error})")
    if not isinstance(entry, dict):
        return Unread(where, f"row {where}: metrics that are no object")
    plain = {
        key: value
        for key, value in entry.items()
        if not (isinstance(value, dict) and "_type" in value)  # tables, images, histograms
    }
    values = numbers(plain)
    own = step_of(values)  # transformers logs its step as a metric; trackio's own counts the calls
    return MetricsRow(number(step) if own is None else own, values, where)
