r"""Record what OpenRLHF's `PolicyLoss` is computed from, and log metrics as JSON lines.

    RLPROOF_RECORD=steps-{rank}.jsonl RLPROOF_METRICS=metrics.jsonl \
        python -m rlproof.integrations.openrlhf --actor.model_name_or_path …

in the place of `python -m openrlhf.cli.train_ppo_ray`: the same program and options. OpenRLHF has
no place for loggers or losses of one's own, and its workers are processes of Ray; so the command
asks Ray to call `install` when each starts, and `install` changes three classes as they are
imported: `PolicyLoss` also records, `ActorPPOTrainer` also counts, `BasePPOTrainer` also logs.
What they compute and return stays as it is. Read against OpenRLHF 0.11.2.
Shapes: B rows, T slots.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from rlproof.integrations.losses import Place, write
from rlproof.watch.record import recorder_of

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


@dataclass(slots=True)
class Clock:
    """Where training is: OpenRLHF's `ppo_train` is one batch of completions."""

    batches: int = 0
    update: int = 0
    micro_batch: int = 0

    def begin(self) -> None:
        """A new batch of completions. What an update has accumulated stays."""
        self.batches += 1
        self.update = 0

    def ran(self, stepped: bool) -> None:
        """One micro-batch was used, and the optimizer moved or not."""
        self.micro_batch = 0 if stepped else self.micro_batch + 1
        self.update += stepped

    def place(self) -> Place:
        """Of the next micro-batch. Outside of `ppo_train` nothing is known of its batch."""
        known = self.batches > 0
        step = self.batches - 1 if known else self.update
        return Place(step, self.update if known else None, self.micro_batch)


def count_updates(trainer: type, clock: Clock) -> None:
    """Let the clock follow an `ActorPPOTrainer`."""
    ppo_train: Callable[..., Any] = trainer.ppo_train  # type: ignore[attr-defined]
    training_step: Callable[..., Any] = trainer.training_step  # type: ignore[attr-defined]

    @functools.wraps(ppo_train)
    def counted_train(self: Any, *args: Any, **kwargs: Any) -> Any:
        clock.begin()
        return ppo_train(self, *args, **kwargs)

    @functools.wraps(training_step)
    def counted_step(self: Any, experience: Any, kl_ctl: Any, step: int, *args: Any) -> Any:
        result = training_step(self, experience, kl_ctl, step, *args)
        clock.ran(_stepped(self, clock, step))
        return result

    trainer.ppo_train = counted_train  # type: ignore[attr-defined]
    trainer.training_step = counted_step  # type: ignore[attr-defined]


def _stepped(trainer: Any, clock: Clock, step: int) -> bool:
    """Whether the optimizer moved after this micro-batch; DeepSpeed counts to its own number."""
    try:
        if trainer.args.train.dynamic_batch_enable:
            return bool(trainer.replay_buffer.dynamic_optimizer_step[step])
        return clock.micro_batch + 1 >= int(trainer.strategy.accumulated_gradient)
    except (AttributeError, TypeError, IndexError):
        return True


def record_loss(loss: type, aggregate: Callable[..., Any], clock: Clock) -> None:
    """Let a `PolicyLoss` also record, into the file of RLPROOF_RECORD.

    Args:
        loss: the class, whose `forward` is replaced by one that calls it.
        aggregate: OpenRLHF's `aggregate_loss`, asked how much of an update a micro-batch is.
        clock: where training is.
    """
    forward: Callable[..., Any] = loss.forward  # type: ignore[attr-defined]

    @functools.wraps(forward)
    def recording(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = forward(self, *args, **kwargs)
        recorder, place = recorder_of(), clock.place()
        if recorder is not None and recorder.due(place.step):
            given = {**dict(zip(_ORDER, args, strict=False)), **kwargs}
            if getattr(given.get("log_probs"), "requires_grad", False):
                write(
                    recorder, place, result[0], given["log_probs"],
                    functools.partial(_scale, self, aggregate, given),
                    old_logps=given.get("old_log_probs"), advantages=given.get("advantages"),
                    sampler_logps=given.get("rollout_log_probs"), mask=given.get("action_mask"),
                    facts={"clip_low": self.clip_eps_low, "clip_high": self.clip_eps_high},
                )  # fmt: skip
        return result

    loss.forward = recording  # type: ignore[attr-defined]


_ORDER = (
    "log_probs", "old_log_probs", "advantages", "action_mask", "rollout_log_probs", "dp_size",
    "batch_num_tokens", "global_batch_size",
)  # fmt: skip
_COUNTS = _ORDER[-3:]


def _scale(loss: Any, aggregate: Callable[..., Any], given: Mapping[str, Any]) -> float:
    """The loss of the micro-batch within the update over its loss alone, by OpenRLHF's rule."""
    mask = given["action_mask"]
    counts = {name: given[name] for name in _COUNTS if name in given}
    by_token = {"token_level_loss": loss.token_level_loss}
    whole, alone = (
        float(aggregate(mask.double(), mask, **by_token, **how)) for how in (counts, {})
    )
    return whole / alone if alone else 1.0


class _Importer(MetaPathFinder):
    """Changes modules when they have been executed."""

    def __init__(self, changes: Mapping[str, Callable[[Any], None]]) -> None:
        self.changes = dict(changes)

    def find_spec(
        self, fullname: str, path: Any = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that Python itself finds, with a loader that goes on to change the module."""
        change = self.changes.pop(fullname, None)
        spec = PathFinder.find_spec(fullname, path, target) if change is not None else None
        if spec is None or spec.loader is None or change is None:
            return None
        execute = spec.loader.exec_module

        def and_change(module: ModuleType) -> None:
            execute(module)
            change(module)

        spec.loader.exec_module = and_change  # type: ignore[method-assign]
        return spec


_clock = Clock()
_changes: dict[str, Callable[[Any], None]] = {
    "openrlhf.models.loss": lambda m: record_loss(m.PolicyLoss, m.aggregate_loss, _clock),
    "openrlhf.trainer.ray.ppo_actor": lambda m: count_updates(m.ActorPPOTrainer, _clock),
    "openrlhf.trainer.ppo_trainer": lambda m: add_logger(m.BasePPOTrainer),
}
_installed = False


def install() -> None:
    """Change OpenRLHF's classes in this process: now, or when they are imported. Once."""
    global _installed
    if _installed:
        return
    _installed = True
    later = {}
    for name, change in _changes.items():
        if name in sys.modules:
            change(sys.modules[name])
        else:
            later[name] = change
    sys.meta_path.insert(0, _Importer(later))


def main() -> None:
    """Run OpenRLHF's `train_ppo_ray` with every process of Ray set up to record and log."""
    import runpy

    import ray

    init = ray.init

    @functools.wraps(init)
    def init_with_hook(*args: Any, runtime_env: Any = None, **kwargs: Any) -> Any:
        return init(*args, runtime_env=runtime_environment(runtime_env or {}), **kwargs)

    ray.init = init_with_hook
    runpy.run_module("openrlhf.cli.train_ppo_ray", run_name="__main__", alter_sys=True)


def runtime_environment(given: Mapping[str, Any]) -> dict[str, Any]:
    """A `runtime_env` of Ray that also calls `install`, and hands on the variables of rlproof."""
    own = {name: value for name, value in os.environ.items() if name.startswith("RLPROOF_")}
    hook = {"worker_process_setup_hook": "rlproof.integrations.openrlhf.install"}
    return {**hook, **given, "env_vars": {**own, **given.get("env_vars", {})}}


if __name__ == "__main__":
    main()
