"""Record the steps of a loop in PyTorch, with the gradient that `backward` computes.

    from rlproof.integrations.pytorch import Recording

    with Recording("steps.jsonl", every=20, groups=8) as recording:
        for step, batch in enumerate(batches):
            ...
            recording.step(step, new_logps=new, old_logps=old, advantages=adv, rewards=rewards,
                           mask=mask, loss=loss)          # before backward
            loss.backward()

A tensor hook on `new_logps` reads ∂loss/∂new_logps, and one on `loss` the factor that it is
differentiated with: the 1/n of an accumulation, the 2¹⁶ of a gradient scaler. It is recorded
beside loss and gradient, which are without it, unless `facts={"accumulation": n}` declares that it
is to be judged. Hooks return nothing, so no gradient changes. Values are copied when they are
handed over, and only on the steps that are recorded; no graph is kept.
Shapes: B rows, T slots.
"""

from __future__ import annotations

import copy
import inspect
import math
import os
from collections.abc import Mapping
from functools import cache
from types import TracebackType
from typing import Any

from rlproof.errors import ConfigError
from rlproof.watch.record import MAX_BYTES, MAX_SLOTS, Recorder, every_of_environment, record


class Recording:
    """A file of recorded steps; close it, or use it in a `with`.

    Args:
        path: the file, appended to; the default is RLPROOF_RECORD, and without either nothing is
            done. `{rank}` in it becomes the RANK of the process.
        every: record the steps that this number divides; the default is RLPROOF_EVERY, or 20.
        max_slots: rows times tokens of one record.
        max_bytes: size of the file at which recording ends.
        defaults: what is the same at every step, such as `groups=8` or `objective="dapo"`.

    Raises:
        ConfigError: `every` is no whole number from 1 on, or an argument is unknown.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        every: int | None = None,
        max_slots: int = MAX_SLOTS,
        max_bytes: int = MAX_BYTES,
        **defaults: Any,
    ) -> None:
        _known(defaults)
        target = path if path is not None else os.environ.get("RLPROOF_RECORD")
        interval = every if every is not None else every_of_environment()
        self._recorder = (
            Recorder(target, every=interval, max_slots=max_slots, max_bytes=max_bytes)
            if target
            else None
        )
        self._defaults = defaults
        self._open: Capture | None = None
        self._numbered: tuple[tuple[int, int | None], int] | None = None

    def step(
        self,
        step: int,
        *,
        new_logps: Any = None,
        loss: Any = None,
        update: int | None = None,
        micro_batch: int | None = None,
        **values: Any,
    ) -> Capture:
        """Hand over one backward pass, before it happens.

        The record is written at the next call, at the end of the recording or, where this is used
        as `with recording.step(…):`, at the end of that block.

        Args:
            step: number of the batch of completions, of all ranks alike.
            new_logps: the tensor that the loss is computed from (B, T), nats: not a copy.
            loss: what is differentiated, or what is only scaled before it is.
            update: how many updates this batch has already been used for; 0 for the first.
            micro_batch: number among the parts of one update; counted where it is not given.
            values: as for `rlproof.record`.

        Raises:
            ConfigError: an argument is unknown.
        """
        _known(values)
        self.flush()
        if self._recorder is None or not self._recorder.due(step):
            return _IDLE
        number = self._count(step, update) if micro_batch is None else micro_batch
        given = {**self._defaults, **values, "update": update, "micro_batch": number}
        self._open = Capture(self._recorder, step, given, new_logps, loss)
        return self._open

    def _count(self, step: int, update: int | None) -> int:
        """Which call for this update of this step it is."""
        known = self._numbered
        number = known[1] + 1 if known is not None and known[0] == (step, update) else 0
        self._numbered = (step, update), number
        return number

    def flush(self) -> None:
        """Write the step that is open."""
        if self._open is not None:
            self._open.write()
            self._open = None

    def close(self) -> None:
        """Write everything to the disk; a later step opens the file again."""
        self.flush()
        if self._recorder is not None:
            self._recorder.close()

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Capture:
    """One backward pass that is recorded. Nothing in here raises."""

    def __init__(
        self, recorder: Recorder | None, step: int, given: dict[str, Any], new: Any, loss: Any
    ) -> None:
        self._recorder, self._step = recorder, step
        self._given: dict[str, Any] = {}
        self._grad: Any = None
        self._scale: Any = None
        self._hooks: list[Any] = []
        if recorder is None:
            return
        try:
            self._hook(new, loss)
            given = {**given, "new_logps": new, "loss": loss}
            self._given = {name: snapshot(v) for name, v in given.items() if v is not None}
        except Exception as error:  # what tensors hold must not end a run
            recorder.warn(f"{type(error).__name__}: {error}")

    def _hook(self, new: Any, loss: Any) -> None:
        if getattr(new, "requires_grad", False):
            self._hooks.append(new.register_hook(self._take_grad))
        if getattr(loss, "requires_grad", False) and loss.numel() == 1:
            self._hooks.append(loss.register_hook(self._take_scale))

    def _take_grad(self, grad: Any) -> None:
        self._grad = self._sum(self._grad, grad)

    def _take_scale(self, grad: Any) -> None:
        self._scale = self._sum(self._scale, grad)

    def _sum(self, before: Any, grad: Any) -> Any:
        """A copy, plus what an earlier pass through the same graph gave."""
        try:
            part = grad.detach().clone()
            return part if before is None else before + part
        except Exception as error:
            if self._recorder is not None:
                self._recorder.warn(f"{type(error).__name__}: {error}")
            return before

    def write(self) -> None:
        """Append the record, once."""
        recorder, self._recorder = self._recorder, None
        for hook in self._hooks:
            hook.remove()
        given, self._given, self._hooks = self._given, {}, []
        if recorder is None or not given:
            return
        try:
            given |= self._differentiated(given)
        except Exception as error:
            recorder.warn(f"{type(error).__name__}: {error}")
        self._grad = self._scale = None
        recorder.record(step=self._step, **given)

    def _differentiated(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The gradient and the scale, which is taken out of it, or put into the loss too."""
        found: dict[str, Any] = {}
        scale = None if self._scale is None else float(self._scale)
        declared = "accumulation" in (given.get("facts") or {})
        if scale is not None and declared:
            # Whether it is divided once is the question then: loss and gradient keep the scale.
            return {"loss": float(given["loss"]) * scale, "grad": self._grad}
        if scale is not None:
            found["scale"] = scale
        if self._grad is not None:
            usable = scale is not None and math.isfinite(scale) and scale not in (0.0, 1.0)
            found["grad"] = self._grad.double() / scale if usable else self._grad
        elif scale is not None and "new_logps" in given:
            # Zeros would accuse a loop that handed over a copy of what its loss is computed from.
            found["problems"] = ("grad: backward did not pass through new_logps",)
        return found

    def __enter__(self) -> Capture:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.write()


_IDLE = Capture(None, 0, {}, None, None)
"""For steps that are not recorded."""


def snapshot(value: Any) -> Any:
    """A copy on the host, without a graph: what is changed in place later is not seen."""
    if hasattr(value, "detach") and hasattr(value, "data_ptr"):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, list | tuple | Mapping) or hasattr(value, "__array__"):
        return copy.deepcopy(value)
    return value


@cache
def _names() -> frozenset[str]:
    """What `rlproof.record` takes of a step."""
    own = {"step", "path", "every", "grad"}
    return frozenset(inspect.signature(record).parameters) - own


def _known(values: Mapping[str, Any]) -> None:
    """Refuse a name that means nothing: it would be recorded and never read."""
    for name in values:
        if name not in _names():
            expected = ", ".join(sorted(_names()))
            raise ConfigError(f"{name!r}: unknown, expected one of {expected}")
