"""A mixin put before the class of a trainer that exists already."""

from __future__ import annotations

from typing import Any

from rlproof.errors import ConfigError

_NEEDED = ("_generate_and_score_completions", "_compute_loss", "_calculate_rewards")


def check_trainer(trainer: Any) -> None:
    """Whether this has the methods that the mixins extend.

    Raises:
        ConfigError: it has not.
    """
    missing = [name for name in _NEEDED if not hasattr(trainer, name)]
    if missing:
        raise ConfigError(
            f"{type(trainer).__name__} has no {', '.join(missing)}: expected a GRPOTrainer of TRL "
            "1.0 or later; for another loop see rlproof.record"
        )


def put_before(trainer: Any, mixin: type) -> None:
    """Make the trainer an instance of the mixin as well, under the name of its own class."""
    if not isinstance(trainer, mixin):
        own = type(trainer)
        trainer.__class__ = type(own.__name__, (mixin, own), {"__module__": own.__module__})
