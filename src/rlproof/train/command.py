"""`rlproof train RUN.toml`: a line for each step, and what came of it."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rlproof.errors import ConfigError, TrainError
from rlproof.train.config import TrainConfig, load

Emit = Callable[[str], None]
_SHOWN = (
    ("reward", "reward {:.3f}"), ("reward_std", "± {:.3f}"), ("kl", "kl {:.3g}"),
    ("entropy", "entropy {:.2f}"), ("completion_length", "length {:.1f}"),
    ("grad_norm", "grad {:.2g}"), ("clip_frac", "clip {:.1%}"), ("seconds", "{:.1f} s"),
)  # fmt: skip
"""Metrics of the line of a step, and how they are written."""


def train_run(
    path: str, settings: Sequence[str], resume: bool, check_first_step: bool, emit: Emit
) -> int:
    """Train as a file says, and report; the exit code.

    Args:
        path: run.toml.
        settings: `section.key=value` texts that replace what the file says.
        resume: go on from the last checkpoint.
        check_first_step: judge the first step before it is trained on.
        emit: prints.

    Raises:
        RlproofError: settings, data, rewards or checkpoints that are wrong; see `Trainer.train`.
    """
    config = changed(load(path), settings)
    if check_first_step:
        config = config.but(record={"check_first_step": True})
    trainer_class = _trainer_class()
    trainer = trainer_class(
        config, resume=resume, root=Path(path).absolute().parent, say=lambda line: emit(f"{line}\n")
    )
    if not trainer.ranks.main:
        emit = _silent
    began, first = time.monotonic(), trainer.step
    emit(_opening(config, first))
    try:
        result = trainer.train(lambda step, values: emit(f"{line(config, step, values)}\n"))
    except KeyboardInterrupt:
        raise TrainError(
            f"interrupted in step {trainer.step}; `rlproof train {path} --resume` goes on from the "
            "last checkpoint"
        ) from None
    emit(_closing(config, result.history, time.monotonic() - began))
    return 0


def _silent(_text: str) -> None:
    """What other processes than the main one print."""


def changed(config: TrainConfig, settings: Sequence[str]) -> TrainConfig:
    """The run with settings of the command line.

    Raises:
        ConfigError: a text that is no `section.key=value`, or see `TrainConfig`.
    """
    for text in settings:
        name, sign, value = text.partition("=")
        section, dot, key = name.strip().partition(".")
        if not sign or not dot or section not in config.plain():
            known = ", ".join(config.plain())
            raise ConfigError(f"--set {text!r}, expected SECTION.KEY=VALUE; sections: {known}")
        config = config.but(**{section: _nested(key, _value(value.strip()))})
    return config


def _nested(key: str, value: Any) -> dict[str, Any]:
    """`clip.high` as a table in a table."""
    first, dot, rest = key.partition(".")
    return {first: _nested(rest, value) if dot else value}


def _value(text: str) -> Any:
    """A value as TOML has it; text without quotes is text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _trainer_class() -> Any:
    try:
        from transformers.utils import logging

        from rlproof.train.trainer import Trainer
    except ImportError as error:
        raise ConfigError(
            f"training a language model needs {error.name}: pip install 'rlproof[train]'"
        ) from None
    logging.disable_progress_bar()
    return Trainer


def line(config: TrainConfig, step: int, values: dict[str, float]) -> str:
    """`step 12/100  reward 0.431 ± 0.120  …`."""
    width = len(str(config.run.steps))
    parts = [how.format(values[name]) for name, how in _SHOWN if name in values]
    return f"step {step:>{width}}/{config.run.steps}  {'  '.join(parts)}"


def _opening(config: TrainConfig, first: int) -> str:
    objective, batch = config.resolved(), config.batch
    begun = f", from step {first} on" if first else ""
    return (
        f"{objective.name}: {batch.prompts} prompts × {batch.group} completions a step, "
        f"{config.run.steps} steps{begun}, into {config.run.folder}\n"
    )


def _closing(config: TrainConfig, history: list[dict[str, float]], seconds: float) -> str:
    folder = config.run.folder
    if not history:
        return f"nothing left to do: {folder} has all {config.run.steps} steps\n"
    tenth = max(1, len(history) // 10)
    rewards = [values["reward"] for values in history]
    start, end = sum(rewards[:tenth]) / tenth, sum(rewards[-tenth:]) / tenth
    return (
        f"{len(history)} steps in {seconds:.0f} s: reward {start:.3f} at first, {end:.3f} at the "
        f"end (means of {tenth} step{'s' if tenth > 1 else ''})\n"
        f"model: {folder}/model\n"
        f"`rlproof inspect {folder}/metrics.jsonl` and `rlproof inspect "
        f"{folder}/steps.rlproof.jsonl` judge the run\n"
    )
