"""Loggers: the JSONL file, and those of packages, which stand-ins take the place of."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from rlproof.errors import ConfigError
from rlproof.train.config import TrainConfig
from rlproof.train.metrics import Jsonl, cut_to, loggers
from rlproof.watch.command import inspect_path


def config(tmp_path: Any, *to: str) -> TrainConfig:
    return TrainConfig.of({"run": {"folder": str(tmp_path)}, "metrics": {"to": list(to)}})


def test_a_number_that_is_not_finite_is_a_word(tmp_path):
    log = Jsonl(tmp_path / "m.jsonl")
    log.log(0, {"reward": 0.5, "loss": float("nan")})
    size = log.sync()
    log.log(1, {"reward": 0.5, "loss": 0.25})
    log.close()
    lines = (tmp_path / "m.jsonl").read_text().splitlines()
    assert json.loads(lines[0]) == {"step": 0, "reward": 0.5, "loss": "nan"}
    assert any(f.rule.code == "LOG009" for f in inspect_path(str(log.path), ()).findings)
    cut_to(tmp_path / "m.jsonl", size)
    assert (tmp_path / "m.jsonl").read_text() == lines[0] + "\n"


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_wandb_and_what_is_like_it(name, tmp_path, monkeypatch):
    calls: list[Any] = []
    fake = SimpleNamespace(
        init=lambda **given: calls.append(given["project"]),
        log=lambda values, step: calls.append((step, values)),
        finish=lambda: calls.append("finish"),
    )
    monkeypatch.setitem(sys.modules, name, fake)
    (one,) = loggers(config(tmp_path, "jsonl", name), tmp_path)
    one.log(3, {"reward": 1.0, "loss": float("inf")})
    one.close()
    assert calls == ["rlproof", (3, {"reward": 1.0}), "finish"]


@pytest.mark.parametrize("name", ["wandb", "trackio", "tensorboard"])
def test_a_missing_package_is_named(name, tmp_path, monkeypatch):
    for module in (name, "torch.utils.tensorboard"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=f"pip install {name}"):
        loggers(config(tmp_path, name), tmp_path)
