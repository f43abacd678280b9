"""Real inputs of every target, made in the same way each time: what mutations start from."""

from __future__ import annotations

import io
import json
import sqlite3
import struct
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rlproof.faults.page import page
from rlproof.faults.registry import catalogue
from rlproof.watch.record import Recorder
from rlproof.watch.rules.registry import page as rule_page
from rlproof.watch.rules.registry import rules
from tests.cases.reading import every
from tests.support.dumps import rows

ROOT = Path(__file__).parents[2]
_METRICS = [
    {"step": n, "loss": 0.1 - n / 50, "reward": 0.25 * (n % 4), "kl": 0.01 * n, "grad_norm": 0.5,
     "clip_frac": 0.1, "entropy": 2.0 - n / 10, "adv_std": 1.0, "zero_std_frac": 0.25}
    for n in range(6)
]  # fmt: skip


def _script() -> list[bytes]:
    pages = [page(code).planted.encode() for code in list(catalogue())[::8]]
    others = [case for case in every() if case.style in ("class", "trl", "inline", "nn.Module")]
    return [*pages, *(case.bad[0].encode() for case in others[::8])]


def _notebook() -> list[bytes]:
    text = _script()[0].decode()
    cells = [
        {"cell_type": "code", "source": cell.splitlines(keepends=True), "outputs": []}
        for cell in ["%pip install x\n!ls\nx = 1\n", text]
    ]  # fmt: skip
    four = {"cells": cells, "metadata": {"kernelspec": {"language": "python"}}, "nbformat": 4}
    three = {"worksheets": [{"cells": [{"cell_type": "code", "input": text}]}]}
    return [json.dumps(book).encode() for book in (four, three)]


def _lines() -> list[bytes]:
    pages = [rule_page(code).planted for code in list(rules())[::6]]
    shown = [page.text.encode() for page in pages if page.language == "jsonl"]
    dump = "".join(json.dumps(row) + "\n" for row in rows(2)).encode()
    nested = "".join(json.dumps({"step": r["step"], "data": r}) + "\n" for r in _METRICS).encode()
    return [*shown, dump, nested]


def _record() -> list[bytes]:
    """One with everything, one with rewards, one with tokens."""
    logps = -np.random.default_rng(0).random((4, 3))
    rows: dict[str, Any] = {"rewards": [0, 1, 1, 0], "advantages": [-1.0, 1.0, 1.0, -1.0]}
    slots: dict[str, Any] = {"new_logps": logps, "old_logps": logps, "mask": np.ones((4, 3)),
                             "tokens": np.ones((4, 3), np.int32)}  # fmt: skip
    facts = {"objective": "grpo", "eos": [1], "longest": 3}
    every = [
        {**rows, **slots, "ref_logps": logps - 0.01, "grad": logps, "loss": 0.25, "facts": facts},
        {**rows, "groups": [0, 0, 1, 1], "grad_norm": 0.5, "micro_batch": 1, "rank": 0},
        {**slots, "prompts": [[1], [2, 3], [4], [5]], "facts": facts},
    ]
    made = []
    for given in every:
        with tempfile.TemporaryDirectory() as folder:
            recorder = Recorder(Path(folder) / "a.jsonl", every=1)
            recorder.record(step=3, update=1, **{"groups": 2, **given})
            recorder.close()
            made.append((Path(folder) / "a.jsonl").read_bytes())
    return made


def _table() -> list[bytes]:
    keys = list(_METRICS[0])
    body = [",".join(keys)] + [",".join(str(row[key]) for key in keys) for row in _METRICS]
    return ["\n".join(body).encode(), b'prompt,completion,reward\n"a, b","c\nd",0.5\n']


def _console() -> list[bytes]:
    verl = "".join(f"step:{r['step']} - loss:{r['loss']} - kl:np.float64({r['kl']})\n"
                   for r in _METRICS)  # fmt: skip
    trl = "".join(f"{row}\n" for row in _METRICS)
    other = "".join(f"\x1b[36mGlobal step {r['step']}: {r}\x1b[0m\n" for r in _METRICS)
    return [verl.encode(), trl.encode(), other.encode()]


def _state() -> list[bytes]:
    return [json.dumps({"log_history": _METRICS, "global_step": 6}).encode()]


def _parquet() -> list[bytes]:
    import pyarrow as arrow
    from pyarrow import parquet

    made = []
    for table, how in ((_METRICS, "none"), (rows(1), "snappy")):
        sink = io.BytesIO()
        parquet.write_table(arrow.Table.from_pylist(table), sink, compression=how)
        made.append(sink.getvalue())
    return made


def _events() -> list[bytes]:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    with tempfile.TemporaryDirectory() as folder:
        writer = EventFileWriter(folder)
        for row in _METRICS:
            values = [Summary.Value(tag=k, simple_value=v) for k, v in row.items()]
            writer.add_event(Event(step=int(row["step"]), summary=Summary(value=values)))
        writer.close()
        return [path.read_bytes() for path in Path(folder).iterdir()]


def _wandb() -> list[bytes]:
    from wandb.proto import wandb_internal_pb2 as messages

    raw = b":W&B" + struct.pack("<HB", 0xBEE1, 0)
    for row in _METRICS:
        record = messages.Record()
        for key, value in row.items():
            item = record.history.item.add()
            item.key, item.value_json = key, json.dumps(value)
        part = record.SerializeToString()
        raw += struct.pack("<IHB", 0, len(part), 1) + part
    return [raw]


def _trackio() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.db"
        store = sqlite3.connect(path)
        store.execute("CREATE TABLE metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT, "
                      "timestamp TEXT, run_name TEXT, step INTEGER, metrics TEXT)")  # fmt: skip
        for row in _METRICS:
            store.execute("INSERT INTO metrics (run_id, timestamp, run_name, step, metrics) VALUES "
                          "('a', 't', 'n', ?, ?)", (row["step"], json.dumps(row)))  # fmt: skip
        store.commit()
        store.close()
        return [path.read_bytes()]


def _run_toml() -> list[bytes]:
    return [path.read_bytes() for path in sorted((ROOT / "examples").glob("*/run.toml"))]


def _project() -> list[bytes]:
    text = ('[tool.rlproof]\nselect = ["SUR", "MSK001"]\nignore = []\nobjective = "dapo"\n'
            'timeout = 2.5\nformat = "json"\nbaseline = "a"\n'
            'roles = { logp = "new" }\n')  # fmt: skip
    return [text.encode(), (ROOT / "pyproject.toml").read_bytes()]


def _baseline() -> list[bytes]:
    entry = {"path": "train.py", "code": "SUR004", "function": "loss", "text": "0" * 16, "count": 2}
    return [json.dumps({"schema": 1, "findings": [entry, {**entry, "code": "MSK001"}]}).encode()]


def _stored() -> list[bytes]:
    from rlproof.options import Options
    from rlproof.single import examine
    from rlproof.stored import dumps

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.py"
        path.write_bytes(_script()[0])
        options = Options(frozenset(catalogue()), None, None, False, 1.0, "full")
        return [dumps((b"settings", {"a.py": "0" * 64}, examine(str(path), options)))]


def _prompts() -> list[bytes]:
    made: list[dict[str, Any]] = [
        {"prompt": "1 + 1 =", "answer": "2"},
        {"prompt": [{"role": "user"}]},
    ]
    return ["".join(json.dumps(row) + "\n" for row in made).encode()]


_SEEDS: dict[str, Callable[[], list[bytes]]] = {
    "script": _script, "notebook": _notebook, "lines": _lines, "record": _record, "table": _table,
    "console": _console, "followed": _console, "state": _state, "parquet": _parquet,
    "events": _events, "wandb": _wandb, "trackio": _trackio, "run_toml": _run_toml,
    "project": _project, "baseline": _baseline, "stored": _stored, "prompts": _prompts,
}  # fmt: skip


@cache
def seeds(name: str) -> tuple[bytes, ...]:
    """Real inputs of a target."""
    return tuple(_SEEDS[name]())
