"""A logger with the interface of OpenRLHF's, that writes JSON lines."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Mapping
from typing import Any

METRICS = "RLPROOF_METRICS"


class JsonlLogger:
    """Metrics as JSON lines, with the interface of OpenRLHF's loggers.

    Keys are OpenRLHF's own, which `rlproof inspect` knows; those of an evaluation get `eval/`.

    Args:
        path: the file, appended to.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = open(path, "a", buffering=1, encoding="utf-8")  # noqa: SIM115

    def log_train(self, global_step: int, logs_dict: Mapping[str, Any]) -> None:
        """One line of what training logged."""
        self._write(global_step, logs_dict)

    def log_eval(self, global_step: int, logs_dict: Mapping[str, Any]) -> None:
        """One line of what an evaluation logged."""
        self._write(global_step, {f"eval/{name}": value for name, value in logs_dict.items()})

    def _write(self, step: int, values: Mapping[str, Any]) -> None:
        """Numbers only: a sample of text is another logger's."""
        pairs = ((name, _number(value)) for name, value in values.items())
        numbers = {name: number for name, number in pairs if number is not None}
        self._file.write(json.dumps({"step": int(step), "metrics": numbers}) + "\n")

    def close(self) -> None:
        """End the file."""
        self._file.close()


def _number(value: Any) -> float | None:
    if isinstance(value, str | bytes):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        return None


class Several:
    """Loggers that are called one after another."""

    def __init__(self, *loggers: Any) -> None:
        self.loggers = [one for one in loggers if one is not None]

    def log_train(self, global_step: int, logs_dict: Mapping[str, Any]) -> None:
        """All of them."""
        for one in self.loggers:
            one.log_train(global_step, logs_dict)

    def log_eval(self, global_step: int, logs_dict: Mapping[str, Any]) -> None:
        """All of them."""
        for one in self.loggers:
            one.log_eval(global_step, logs_dict)

    def close(self) -> None:
        """All of them."""
        for one in self.loggers:
            one.close()


def add_logger(trainer: type, path: str | None = None) -> None:
    """Let a `BasePPOTrainer` also log to the file of RLPROOF_METRICS, beside its other loggers."""
    original: Callable[..., None] = trainer.__init__  # type: ignore[misc]

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        target = path or os.environ.get(METRICS)
        if target:
            self.tensorboard_logger = Several(self.tensorboard_logger, JsonlLogger(target))

    trainer.__init__ = init  # type: ignore[misc]
