"""What hooks on the loss functions of frameworks share: which call this is, and its gradient.

A framework hands its loss a micro-batch, and has it divide by counts of the whole update, so that
micro-batches add up. A record stands alone: it holds the loss and the gradient as if the
micro-batch were the batch, and the factor as `scale`.
Shapes: B rows, T slots.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rlproof.errors import ConfigError
from rlproof.watch.record import Recorder

UPDATES = "RLPROOF_UPDATES"


@dataclass(slots=True)
class Place:
    """Which update of the weights a call belongs to, counted from 0 in this process."""

    step: int
    """The batch of completions where `updates` is known, else the update itself."""
    update: int | None
    """How many updates the batch has been used for before; None where that is unknown."""
    micro_batch: int


@dataclass(slots=True)
class Progress:
    """Counts the calls of a loss function.

    Args:
        updates: updates of the weights that one batch of completions is used for, if known.
    """

    updates: int | None = None
    done: int = 0
    micro_batch: int = 0
    _rows: float = 0.0

    def next(self, rows: int, whole: float | None) -> Place:
        """The place of a micro-batch of `rows` in an update of `whole` rows on this rank.

        Where `whole` is unknown every call is an update.
        """
        place = self._place()
        self.micro_batch += 1
        self._rows += rows
        if whole is None or self._rows >= whole - 0.5:
            self.done += 1
            self.micro_batch, self._rows = 0, 0.0
        return place

    def _place(self) -> Place:
        if self.updates is None:
            return Place(self.done, None, self.micro_batch)
        return Place(self.done // self.updates, self.done % self.updates, self.micro_batch)


def updates_of_environment() -> int | None:
    """RLPROOF_UPDATES: updates of the weights that one batch of completions is used for.

    Raises:
        ConfigError: it is no whole number from 1 on.
    """
    text = os.environ.get(UPDATES)
    if not text:
        return None
    if not text.isdigit() or int(text) < 1:
        raise ConfigError(f"{UPDATES} is {text!r}, expected a whole number from 1 on")
    return int(text)


def gradient(loss: Any, logps: Any) -> Any:
    """∂loss/∂logps (B, T), or None where nothing is differentiated.

    Autograd walks the graph of the loss function alone, down to the log-probs; the graph stays as
    it is for the backward pass that follows, and no `.grad` is touched.
    """
    if not getattr(loss, "requires_grad", False) or not getattr(logps, "requires_grad", False):
        return None
    import torch

    (found,) = torch.autograd.grad(loss, logps, retain_graph=True, allow_unused=True)
    return torch.zeros_like(logps) if found is None else found


def write(
    recorder: Recorder,
    place: Place,
    loss: Any,
    logps: Any,
    scale: Callable[[], float],
    **values: Any,
) -> None:
    """Append one micro-batch. Warns where that fails, and never raises.

    Args:
        recorder: the file.
        place: which call it is.
        loss: as the framework's function returned it, with its graph.
        logps: what it was given as log-probs of the policy that is trained (B, T).
        scale: gives the factor between the loss and that of the micro-batch alone.
        values: the other arguments of `rlproof.record`.
    """
    try:
        slopes, factor = gradient(loss, logps), scale()
        number = float(loss.detach())
        if factor > 0:
            number /= factor
            slopes = None if slopes is None else slopes.double() / factor
        values |= {"scale": factor, "loss": number, "grad": slopes, "new_logps": logps}
        recorder.record(
            step=place.step, update=place.update, micro_batch=place.micro_batch, **values
        )
    except Exception as error:  # a record must not end a run
        recorder.warn(f"{type(error).__name__}: {error}")
