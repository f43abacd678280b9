"""A reward function that kills its process once: set DIES to `rank:step`, and it is a SIGKILL."""

from __future__ import annotations

import os
import signal
from typing import Any

from tests.support import tiny_policy


def share_of_a(completions: list[Any], trainer_state: Any, **_: Any) -> list[float]:
    """That of `tiny_policy`, if the process lives."""
    if os.environ.get("DIES") == f"{os.environ.get('RANK')}:{trainer_state.global_step}":
        os.kill(os.getpid(), signal.SIGKILL)
    return tiny_policy.share_of_a(completions)
