"""Training of language models on the objectives of `rlproof.space`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlproof.train.config import TrainConfig
    from rlproof.train.trainer import Result, Trainer

__all__ = ["Result", "TrainConfig", "Trainer", "load"]
_PLACES = {"Result": "trainer", "TrainConfig": "config", "Trainer": "trainer", "load": "config"}


def __getattr__(name: str) -> Any:
    """Imported on first use: torch takes seconds."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"rlproof.train.{_PLACES[name]}"), name)
