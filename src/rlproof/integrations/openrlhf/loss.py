"""OpenRLHF's `PolicyLoss`, recorded.

Shapes: B rows, T slots.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from rlproof.integrations.losses import write
from rlproof.integrations.openrlhf.counting import Clock
from rlproof.watch.record import recorder_of

_ORDER = (
    "log_probs", "old_log_probs", "advantages", "action_mask", "rollout_log_probs", "dp_size",
    "batch_num_tokens", "global_batch_size",
)  # fmt: skip
_COUNTS = _ORDER[-3:]


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


def _scale(loss: Any, aggregate: Callable[..., Any], given: Mapping[str, Any]) -> float:
    """The loss of the micro-batch within the update over its loss alone, by OpenRLHF's rule."""
    mask = given["action_mask"]
    counts = {name: given[name] for name in _COUNTS if name in given}
    by_token = {"token_level_loss": loss.token_level_loss}
    whole, alone = (
        float(aggregate(mask.double(), mask, **by_token, **how)) for how in (counts, {})
    )
    return whole / alone if alone else 1.0
