"""Change OpenRLHF's classes as they are imported, in every process of Ray."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from rlproof.integrations.openrlhf.counting import Clock, count_updates
from rlproof.integrations.openrlhf.logger import add_logger
from rlproof.integrations.openrlhf.loss import record_loss


class Importer(MetaPathFinder):
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
    sys.meta_path.insert(0, Importer(later))


def runtime_environment(given: Mapping[str, Any]) -> dict[str, Any]:
    """A `runtime_env` of Ray that also calls `install`, and hands on the variables of rlproof."""
    own = {name: value for name, value in os.environ.items() if name.startswith("RLPROOF_")}
    hook = {"worker_process_setup_hook": "rlproof.integrations.openrlhf.install"}
    return {**hook, **given, "env_vars": {**own, **given.get("env_vars", {})}}
