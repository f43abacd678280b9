"""Odd records and odd logs: never an internal error, never a finding out of nothing."""

import json
import random
import warnings

import numpy as np
import pytest

from rlproof.watch.command import inspect_path, render
from rlproof.watch.record import Recorder

ODD = {
    "no rows": {"rewards": [], "advantages": [], "groups": 4, "new_logps": np.zeros((0, 3))},
    "no slots": {"rewards": [1.0], "advantages": [0.0], "groups": 1, "new_logps": np.zeros((1, 0))},
    "one row": {"rewards": [1.0], "advantages": [0.0], "groups": 1, "new_logps": [[-1.0]]},
    "nothing real": {"new_logps": -np.ones((2, 2)), "mask": np.zeros((2, 2)),
                     "advantages": [1.0, -1.0]},
    "one dimension": {"new_logps": -np.ones(4), "advantages": np.ones(4), "mask": np.ones(4)},
    "three dimensions": {"new_logps": -np.ones((2, 2, 2)), "advantages": np.ones(2)},
    "shapes that differ": {"new_logps": -np.ones((4, 3)), "old_logps": -np.ones((4, 2)),
                           "mask": np.ones((3, 3)), "rewards": np.ones(5), "groups": 3},
    "groups that do not divide": {"rewards": np.arange(5.0), "advantages": np.arange(5.0),
                                  "groups": 2},
    "groups of another length": {"rewards": np.arange(4.0), "groups": [0, 0, 1],
                                 "advantages": np.arange(4.0)},
    "groups of one": {"rewards": np.arange(4.0), "advantages": np.zeros(4), "groups": 1},
    "a group size of zero": {"rewards": np.arange(4.0), "advantages": np.zeros(4), "groups": 0},
    "integers": {"rewards": [0, 1], "advantages": [1, -1], "groups": 2, "new_logps": [[-1], [-2]]},
    "advantages by slot": {"rewards": np.arange(4.0), "groups": 2, "new_logps": -np.ones((4, 3)),
                           "advantages": np.arange(12.0).reshape(4, 3)},
    "several rewards": {"rewards": np.ones((4, 3)), "groups": 2, "advantages": np.zeros(4)},
    "large numbers": {"new_logps": -1e300 * np.ones((4, 2)), "old_logps": -np.ones((4, 2)),
                      "advantages": 1e300 * np.array([1.0, -1, 1, -1]), "loss": 1e300},
    "a gradient of padding": {"new_logps": -np.ones((2, 2)), "grad": np.full((2, 2), np.nan),
                              "mask": np.zeros((2, 2)), "advantages": [1.0, -1.0]},
    "unknown facts": {"rewards": [1.0], "facts": {"nonsense": 1}},
    "an unknown objective": {"rewards": [1.0], "objective": "nobody"},
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_odd_records(tmp_path, name):
    recorder = Recorder(tmp_path / "a.jsonl", every=1)
    for step in range(6):
        assert recorder.record(step=step, update=0, **{"loss": 0.25, **ODD[name]})
    recorder.close()
    for facts in ((), ("objective=grpo",), ("scale=population-std", "group_size=2", "updates=1")):
        shown = inspect_path(str(tmp_path / "a.jsonl"), facts)
        assert shown.exit_code == 0 or name in ("large numbers",)
        assert render(shown, "text", 80)
        json.loads(render(shown, "json", 80))


@pytest.mark.parametrize("seed", range(30))
def test_records_of_any_parts(tmp_path, seed):
    """Any subset of arrays, with NaN, infinity and zeros anywhere."""
    rng, choose = np.random.default_rng(seed), random.Random(seed)
    recorder = Recorder(tmp_path / "a.jsonl", every=1)
    for step in range(6):
        rows, width = choose.choice((1, 4, 8)), choose.choice((1, 3, 6))
        names = ("new_logps", "old_logps", "ref_logps", "sampler_logps", "mask", "grad", "entropy")
        given = {
            name: choose.choice((-1.0, 0.0, 1.0)) * rng.random((rows, width))
            for name in names
            if choose.random() < 0.8
        }
        given |= {"rewards": rng.integers(0, 2, rows), "advantages": rng.normal(size=rows)}
        for values in given.values():
            if choose.random() < 0.2 and values.dtype == float:
                values.flat[choose.randrange(values.size)] = choose.choice((np.nan, np.inf, 0.0))
        recorder.record(
            step=step, update=choose.choice((None, 0, 1)), groups=choose.choice((None, 1, 2, rows)),
            loss=choose.choice((None, 0.0, 0.5, float("nan"))), **given,
        )  # fmt: skip
    recorder.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shown = inspect_path(str(tmp_path / "a.jsonl"), ("objective=dapo",))
    assert shown.steps == 6
    json.loads(render(shown, "json", 80))


VALUES = ("nan", "inf", -1e308, 1e308, 0, 1, True, None, [], {}, "text", "0.5", [1, 2], {"a": 1})
KEYS = ("step", "loss", "reward", "kl", "entropy", "adv_std", "adv_max", "zero_std_frac",
        "clip_frac", "grad_norm", "policy_loss", "truncated", "sampler_gap", "completion", "prompt",
        "advantage", "data", "metrics", "rlproof", "", "\n")  # fmt: skip


@pytest.mark.parametrize("seed", range(30))
def test_logs_of_anything(tmp_path, seed):
    choose = random.Random(seed)
    rows = [
        {choose.choice(KEYS): choose.choice(VALUES) for _ in range(choose.randrange(8))}
        for _ in range(60)
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    cut = "".join(c for c in text if choose.random() > 0.01)  # a line that something ate from
    (tmp_path / "a.jsonl").write_text(text + cut)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shown = inspect_path(str(tmp_path / "a.jsonl"), ("objective=grpo", "group_size=8"))
    json.loads(render(shown, "json", 80))
    assert render(shown, "text", 80)


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.log", "trainer_state.json", "a.txt"])
@pytest.mark.parametrize("raw", [b"", b"\n\n", b"\xff\xfe\x00", b"{", b"[" * 5000, b'{"a":' * 5000,
                                 b"a,b\n\x00,1\n", b'"\n', b"{'a': " + b"(" * 500])  # fmt: skip
def test_files_of_anything(tmp_path, name, raw):
    (tmp_path / name).write_bytes(raw)
    assert inspect_path(str(tmp_path / name), ()).exit_code == 5
