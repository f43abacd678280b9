"""Where the numbers of each step go: a JSONL file, and loggers that people have.

Names are those of `rlproof.watch.metrics.toml` for loops without a framework, so that
`rlproof inspect metrics.jsonl` reads them.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from rlproof.errors import ConfigError
from rlproof.train.config import TrainConfig
from rlproof.watch.journal import Journal

Values = Mapping[str, float]


class Logger(Protocol):
    """Something that takes the numbers of a step."""

    def log(self, step: int, values: Values) -> None:
        """Take them."""

    def close(self) -> None:
        """Write everything out."""


class Jsonl:
    """One JSON object a line, appended; a line that a crash cut off is closed by the next."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._journal = Journal(str(path))

    def log(self, step: int, values: Values) -> None:
        """One line. A value that is not finite is written as a word: JSON has no such number."""
        said = {k: v if math.isfinite(v) else str(v) for k, v in values.items()}
        self._journal.append(json.dumps({"step": step, **said}).encode())

    def sync(self) -> int:
        """Write through to the disk; the size of the file."""
        self._journal.sync()
        return self._journal.size

    def close(self) -> None:
        """Write through to the disk."""
        self._journal.close()


def cut_to(path: Path, size: int) -> None:
    """Take off what a run wrote after the checkpoint that it is resumed from."""
    if path.exists() and path.stat().st_size > size:
        os.truncate(path, size)


class _TensorBoard:
    def __init__(self, _config: TrainConfig, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder / "tensorboard"))

    def log(self, step: int, values: Values) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        self._writer.close()


class _Wandb:
    """wandb, and trackio, which has its interface."""

    package = "wandb"

    def __init__(self, config: TrainConfig, folder: Path) -> None:
        import importlib

        self._module = importlib.import_module(self.package)
        extra = {"dir": str(folder)} if self.package == "wandb" else {}
        self._module.init(
            project=config.metrics.project, name=folder.name, config=config.plain(), **extra
        )

    def log(self, step: int, values: Values) -> None:
        self._module.log({k: v for k, v in values.items() if math.isfinite(v)}, step=step)

    def close(self) -> None:
        self._module.finish()


class _Trackio(_Wandb):
    package = "trackio"


_LOGGERS: dict[str, type[Any]] = {
    "tensorboard": _TensorBoard, "wandb": _Wandb, "trackio": _Trackio,
}  # fmt: skip


def loggers(config: TrainConfig, folder: Path) -> list[Logger]:
    """Those that are asked for beside the JSONL file.

    Raises:
        ConfigError: the package of one is not installed.
    """
    made: list[Logger] = []
    for name in config.metrics.to:
        if name == "jsonl":
            continue
        try:
            made.append(_LOGGERS[name](config, folder))
        except ImportError as error:
            raise ConfigError(
                f"[metrics] to has {name!r}, whose package is missing ({error}): pip install {name}"
            ) from None
    return made
