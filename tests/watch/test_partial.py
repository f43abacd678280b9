"""Partitions of a dump, put together: the report of one pass over the whole, to the last field."""

import math
import pickle
import random
from dataclasses import fields

import pytest
from tests.support.dumps import rows, write

from rlproof.errors import ConfigError
from rlproof.watch.command import inspect_path
from rlproof.watch.facts import facts_of
from rlproof.watch.partial import combine, inspect_partition
from rlproof.watch.signal import MANY, SPARSE, Signal

DECLARED = {"objective": "grpo"}
EXPECTED = {"": set(), "batch": {"ROL001"}, "unscored": {"ROL003"}, "repeated": {"ROL005"},
            "same": {"ROL004"}, "pushed": {"ROL002"}}  # fmt: skip


def whole(folder, entries):
    path = write(folder / "dump.jsonl", entries)
    return inspect_path(str(path), tuple(f"{k}={v}" for k, v in DECLARED.items()))


def split(entries, parts, seed=0):
    """Whole steps, each at random into one of the parts."""
    rng = random.Random(seed)
    owner = {step: rng.randrange(parts) for step in sorted({e["step"] for e in entries})}
    return [[e for e in entries if owner[e["step"]] == k] for k in range(parts)]


def together(parts):
    return combine([inspect_partition(part) for part in parts], facts_of(DECLARED))


def same(one, other):
    for field in fields(one):
        if field.name not in ("path", "kind"):
            assert getattr(one, field.name) == getattr(other, field.name), field.name


@pytest.mark.parametrize("fault", EXPECTED)
def test_the_report_of_parts_is_that_of_the_whole(tmp_path, fault):
    entries = rows(70, fault)
    one = whole(tmp_path, entries)
    assert {f.rule.code for f in one.findings} == EXPECTED[fault]
    for parts in (1, 3, 30):
        same(one, together(reversed(split(entries, parts))))


def test_a_fault_that_comes_late_is_compared_in_parts_as_in_the_whole(tmp_path):
    """Group statistics in 300 steps, and batch statistics in one of the sampled late ones."""
    late = next(s for s in range(200, 300) if Signal(s, 0, True, False, None, None).sampled)
    good, bad = rows(300), rows(300, "batch")
    entries = [b if g["step"] == late else g for g, b in zip(good, bad, strict=True)]
    one = whole(tmp_path, entries)
    assert one.said == (
        "no formula known here makes these advantages of these rewards, which is no fault",
    )
    same(one, together(split(entries, 5)))
    between = next(s for s in range(200, 300) if not Signal(s, 0, True, False, None, None).sampled)
    entries = [b if g["step"] == between else g for g, b in zip(good, bad, strict=True)]
    one = whole(tmp_path, entries)
    assert one.said == ("the advantages are: group-mean baseline over population-std",)
    same(one, together(split(entries, 5)))


def test_one_late_step_in_sixteen_is_compared():
    """Binomial with p = 1/16 over 16,000 numbers: 1000 expected, standard deviation 30.6."""
    for stride in (1, 2, 5, 10, 16, 100):
        chosen = sum(
            Signal(stride * k, 0, True, False, None, None).sampled for k in range(1000 * SPARSE)
        )
        assert abs(chosen - 1000) < 6 * 31, stride


def test_late_steps_of_a_partition_keep_no_rows():
    (found,) = [inspect_partition(rows(400))]
    kept = [s.step for s in found.steps if s.signal.rows is not None]
    assert kept[:MANY] == list(range(MANY))
    assert all(found.steps[int(step)].signal.sampled for step in kept[MANY:])
    assert len(kept) < MANY + 2 * (400 - MANY) / SPARSE


def test_a_long_step_is_looked_at_in_the_same_parts(tmp_path, monkeypatch):
    monkeypatch.setattr("rlproof.watch.inspect.MOST", 10)
    monkeypatch.setattr("rlproof.watch.partial.MOST", 10)
    entries = rows(12, "batch")
    same(whole(tmp_path, entries), together(split(entries, 4)))


def test_partials_travel():
    part = inspect_partition(rows(3, "batch"))
    again = pickle.loads(pickle.dumps(part))
    assert combine([again]).said == combine([part]).said


def test_a_step_in_two_partitions_is_refused():
    entries = rows(3)
    with pytest.raises(ConfigError, match="step 1 lies in two partitions"):
        together([entries[:30], entries[30:]])


def test_other_rows_are_counted():
    shown = together([[*rows(2), {"step": 1, "loss": 0.5}], [{"text": "x"}]])
    assert shown.completions == len(rows(2))
    assert ("2 rows", "no completions with a reward or an advantage") in shown.skipped


def test_nothing_at_all():
    assert together([]).exit_code == 5
    assert together([[], [{"text": "x"}]]).exit_code == 5


@pytest.mark.parametrize("step", [math.nan, math.inf, 1e300, None, "x", -3])
def test_odd_numbers_of_steps(tmp_path, step):
    entries = [e | {"step": step} for e in rows(2)]
    assert together([entries]).completions == len(entries)
    if step == step:
        same(whole(tmp_path, entries), together([entries]))
