"""What fuzzing found, each with the smallest input that shows it, and what is said now.

Before, every one of these was an internal error, a traceback or a hang. Numbers: Python writes no
integer of more than 4300 digits, and no float holds one of more than 308.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
import time
from pathlib import Path

import pytest

from rlproof.cache import _HEAD as _HEAD_OF_CACHE
from rlproof.cache import Cache
from rlproof.errors import ConfigError, quoted
from rlproof.read import notebook
from rlproof.stored import NotStorableError, dumps, loads
from rlproof.watch.command import inspect_path
from rlproof.watch.facts import facts_of
from rlproof.watch.readers import console, jsonl
from rlproof.watch.readers.items import MetricsRow, Unread
from rlproof.watch.readers.opening import open_source
from rlproof.watch.readers.values import numbers
from tests.fuzz.seeds import seeds
from tests.fuzz.targets import held

_HEAD = b"def grpo_loss(new_logps, old_logps, advantages, mask):\n    x = "
_TAIL = b"\n    return -sum(min(a, b) for a, b in zip(new_logps, advantages)) + x\n"

TOLD: list[tuple[str, str, bytes, str]] = [
    ("a number of hexadecimal digits", "script", _HEAD + b"0x" + b"f" * 5000 + _TAIL,
     r":2: a number of more than 4000 digits"),
    ("a deep attribute", "script", _HEAD + b"new_logps" + b".a" * 1000 + _TAIL,
     r"nested too deeply"),
    ("a deep lambda", "script", _HEAD + b"lambda: " * 1000 + b"1" + _TAIL, r"nested too deeply"),
    ("a deep cell", "notebook", b'{"cells": [{"cell_type": "code", "source": "' + (
        _HEAD + b"new_logps" + b".a" * 1000 + _TAIL).replace(b"\n", b"\\n") + b'"}]}',
     r"nested too deeply"),
    ("a long number in pyproject.toml", "project", b"a=" + b"9" * 5000, r"can't be read as TOML"),
    ("a deep pyproject.toml", "project", b"a=" + b"[" * 3000, r"can't be read as TOML"),
    ("a hexadecimal setting", "project", b"[tool.rlproof]\ntimeout=0x" + b"f" * 5000,
     r"timeout = a int that is too large to show; expected a number"),
    ("a long number in run.toml", "run_toml", b"a=" + b"9" * 5000, r"can't be read as TOML"),
    ("a deep run.toml", "run_toml", b"a=" + b"[" * 3000, r"can't be read as TOML"),
    ("a rate beyond floats", "run_toml", b"[optimizer]\nlr=1" + b"0" * 400, r"expected a number"),
    ("a deep row of prompts", "prompts", b'{"a":' + b"[" * 3000, r":1: no JSON"),
    ("a view that has no end", "trackio", b"", r"no SQLite file"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "raw", "said"), [t[1:] for t in TOLD], ids=[t[0] for t in TOLD])
def test_one_line_says_what_is_wrong(name: str, raw: bytes, said: str, tmp_path: Path) -> None:
    told = held(name, raw, tmp_path)
    assert re.search(said, told), told
    assert "\n" not in told


@pytest.mark.parametrize(
    "more", ["", ',"new_logps":{"d":"<f8","s":[1,1],"b":"AAAAAAAA4L8=","of":"f8"}']
)
def test_a_reward_without_rows_is_left_out(more: str, tmp_path: Path) -> None:
    one = '{"d":"<f8","s":[],"b":"AAAAAAAA4D8=","of":"f8"}'
    raw = f'{{"rlproof":1,"step":3,"arrays":{{"rewards":{one}{more}}}}}'.encode()
    (tmp_path / "a.jsonl").write_bytes(raw)
    shown = inspect_path(str(tmp_path / "a.jsonl"), ())
    assert "rewards is (), expected one or two axes" in str(shown)


def test_a_long_name_of_a_model_is_no_path(tmp_path: Path) -> None:
    (run,) = [raw for raw in seeds("run_toml") if b"arithmetic" in raw or b"[model]" in raw][:1]
    long = re.sub(rb'(?m)^path = "[^"]*"', b'path = "' + b"x" * 5000 + b'"', run)
    assert long != run
    assert held("run_toml", long, tmp_path) == ""


SKIPPED: list[tuple[str, str, bytes, str]] = [
    ("a lone return", "a.csv", b"step,loss\n1,2\r3\n2,3\n", "new-line character"),
    ("half a character", "a.jsonl", b'{"completion":["\\ud800"],"reward":NaN}\n', "no prompt or"),
    ("a type of text", "a.jsonl",
     b'{"rlproof":1,"step":0,"arrays":{"rewards":{"d":"<U1","s":[1],"b":"AAAAAA==","of":""}}}\n',
     "expected numbers"),
    ("a type that is no type", "a.jsonl",
     b'{"rlproof":1,"step":0,"arrays":{"rewards":{"d":"2i4,(","s":[1],"b":"AAAAAA==","of":""}}}\n',
     "expected numbers"),
    ("an axis of less than nothing", "a.jsonl",
     b'{"rlproof":1,"step":0,"arrays":{"tokens":{"d":"<i4","s":[1,-1],"b":"AAAAAA==","of":""}}}\n',
     "shape"),
    ("an empty array without an end", "a.jsonl",
     b'{"rlproof":1,"step":0,"arrays":{"mask":{"d":"<f8","s":[0,9999999999999],"b":"","of":""}}}\n',
     "shape"),
    ("a word for a loss", "a.jsonl", b'{"rlproof":1,"step":0,"loss":"abc"}\n', "damaged record"),
    ("a step beyond 64 bits", "a.jsonl", b'{"rlproof":1,"step":' + b"9" * 400 + b"}\n", "damaged"),
    ("a deep record", "a.jsonl",
     b'{"rlproof":1,"step":0,"facts":{"a":' + b"[" * 5000 + b"}}\n", "damaged"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "raw", "said"), [t[1:] for t in SKIPPED],
                         ids=[t[0] for t in SKIPPED])  # fmt: skip
def test_one_bad_line_is_named_and_the_rest_is_read(
    file: str, raw: bytes, said: str, tmp_path: Path
) -> None:
    (tmp_path / file).write_bytes(raw)
    found = list(open_source(str(tmp_path / file)).items())
    (unread,) = [item for item in found if isinstance(item, Unread)]
    assert said in unread.reason
    inspect_path(str(tmp_path / file), ())


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("{'a': 1" + "0" * 400 + "}", {"a": float("inf")}),
        ("{'a': -0x1" + "0" * 400 + "}", {"a": float("-inf")}),
        ("{'a': {[]: 1}}", None),
        ("{'a': 1, 0x" + "f" * 5000 + ": 2}", {"a": 1}),
        ("{'a': 1, 'b': '\\d'}", {"a": 1}),
    ],
    ids=["huge", "hexadecimal", "no key", "huge key", "odd escape"],
)
def test_what_was_printed_may_be_anything(line: str, values: dict[str, float] | None) -> None:
    row = console.parse(line, 1)
    assert (row and row.values) == values


def test_facts_of_a_record_may_be_anything(tmp_path: Path) -> None:
    for fact in ('"eos":[1e400]', '"eos":[9e99]', '"eos":Infinity', '"group_size":1e300',
                 f'"pad":{"9" * 400}', f'"beta":{"9" * 400}', '"nonsense":1'):  # fmt: skip
        line = '{"rlproof":1,"step":0,"loss":0.5,"facts":{FACT}}\n'.replace("FACT", fact)
        (tmp_path / "a.jsonl").write_text(line)
        inspect_path(str(tmp_path / "a.jsonl"), ())


def test_a_fact_beyond_floats_or_64_bits_is_no_fact() -> None:
    for name in ("beta", "pad", "eos", "group_size"):
        with pytest.raises(ConfigError, match=f"fact {name} is 999"):
            facts_of({name: int("9" * 400)})


@pytest.mark.parametrize("value", [(1, 2, 3), (1, 2), 5, (b"", 5, None), (b"", {5: 5}, None)])
def test_an_entry_of_the_cache_of_another_shape_is_none(value: object, tmp_path: Path) -> None:
    """Behind its checksum it may still be anything."""
    cache = Cache(str(tmp_path), b"")
    cache.settings = b'["a", "b", "c"]'
    if isinstance(value, tuple) and value[0] == b"":
        value = (cache.settings, *value[1:])
    payload = dumps(value)
    entry = Path(cache._entry("a.py"))
    entry.write_bytes(_HEAD_OF_CACHE + hashlib.sha256(payload).digest() + payload)
    assert cache.find("a.py") is None


def test_a_row_of_long_names_takes_no_more_than_itself() -> None:
    """200 names under one of 100 kB would be 20 MB of names; nobody logs such names."""
    assert numbers({"k" * 100_000: {str(n): 1 for n in range(200)}, "loss": 1}) == {"loss": 1}
    deep: dict[str, object] = {"a": 1}
    for _ in range(5000):
        deep = {"a": deep}
    assert numbers({**deep, "loss": 1}) == {"loss": 1}


def test_a_prompt_that_nothing_can_follow_is_named() -> None:
    item = jsonl.item(b'{"reward":NaN,"completion":' + b"[" * 700 + b"]" * 700 + b"}", 1)
    assert isinstance(item, Unread | MetricsRow) or item.reward != item.reward


def test_a_store_that_is_a_view_is_none(tmp_path: Path) -> None:
    """Its rows would never end."""
    path = tmp_path / "a.db"
    store = sqlite3.connect(path)
    store.execute(
        "CREATE VIEW metrics AS WITH RECURSIVE c(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM c) "
        "SELECT id, 'a' AS run_id, 'n' AS run_name, 1 AS step, '{}' AS metrics FROM c"
    )
    store.close()
    with pytest.raises(ConfigError, match="none of trackio"):
        inspect_path(str(path), ())


def test_rows_that_come_again_and_again_end(tmp_path: Path) -> None:
    """Ids that are no whole numbers stand in for the damaged tree that coverage led to."""
    path = tmp_path / "a.db"
    store = sqlite3.connect(path)
    store.execute("CREATE TABLE metrics (id TEXT, run_id TEXT, run_name TEXT, step, metrics TEXT)")
    store.execute("INSERT INTO metrics VALUES ('x', 'a', 'n', 1, '{\"loss\": 1}')")
    store.commit()
    store.close()
    (item,) = open_source(str(path)).items()
    assert isinstance(item, Unread)
    assert "out of order" in item.reason


@pytest.mark.parametrize(
    "raw",
    [{"=": ["str", 5]}, {"=": [[], 5]}, {"=": ["Error", [5, "x"]]}, {"=": ["int", "zz"]}, {}],
    ids=["text", "name", "error", "number", "nothing"],
)
def test_a_stored_value_of_another_shape_is_none(raw: dict[str, object]) -> None:
    import msgspec

    with pytest.raises(NotStorableError):
        loads(msgspec.msgpack.encode(raw))
    assert loads(dumps((1, "a"))) == (1, "a")


@pytest.mark.parametrize(
    "line",
    [
        "Global step 1: {" * 20_000,
        "Global step 1: {'a': 1}" + "Global step 1: {" * 15_000,
        "{'a': 1}" + " " * 200_000 + "x",
        " step:1 - " * 20_000,
    ],
    ids=["openrlhf", "openrlhf closed", "spaces", "verl"],
)
def test_no_printed_line_takes_long(line: str) -> None:
    """Time that grows with the square of a line's length would be minutes here."""
    began = time.process_time()
    console.parse(line, 1)
    assert time.process_time() - began < 2


def test_no_line_of_a_notebook_takes_long() -> None:
    """A line of blanks was looked at once from each of them: 20 s at this length."""
    began = time.process_time()
    list(notebook._cleaned([" " * 100_000 + "é x"]))
    assert time.process_time() - began < 2


def test_values_in_messages_are_short() -> None:
    assert quoted("a") == "'a'"
    assert quoted("x" * 1000) == "'" + "x" * 199 + "…"
    assert quoted(1 << 20_000) == "a int that is too large to show"


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(ConfigError, match="not a regular file"):
        inspect_path(str(tmp_path / "pipe.jsonl"), ())
    with pytest.raises(ConfigError, match="no log or dump"):  # neither of the two is one
        inspect_path(str(tmp_path), ())


def test_a_superscript_is_no_step(tmp_path: Path) -> None:
    """'²'.isdigit() holds, and float('²') raises."""
    (tmp_path / "².jsonl").write_text('{"loss": 1}\n')
    assert inspect_path(str(tmp_path), ()).rows == 1
