"""Write down what a training step was computed from, in two lines of anyone's loop.

    import rlproof
    rlproof.record(step=step, rewards=rewards, groups=8, advantages=adv, new_logps=logps,
                   old_logps=old, mask=mask, loss=loss)

Nothing is written until a path is given, as an argument or in RLPROOF_RECORD, so the call can
stay in the loop. Torch, NumPy, JAX and lists are taken as they are.
Shapes: B rows, T slots.
"""

from __future__ import annotations

import atexit
import math
import os
import threading
import warnings
from collections.abc import Mapping
from typing import Any

from rlproof.errors import ConfigError
from rlproof.watch.journal import Journal
from rlproof.watch.pack import (
    Packed,
    is_ragged,
    pack,
    pack_groups,
    pack_prompts,
    pack_ragged,
)
from rlproof.watch.schema import VERSION, StepRecord, encode

EVERY = 20
"""Steps from one record to the next, unless said otherwise."""
MAX_SLOTS = 1 << 18
"""Slots (rows times tokens) of one record; a larger batch is recorded by its first groups."""
MAX_BYTES = 1 << 30
"""Size of a file beyond which nothing more is written to it."""


class Recorder:
    """One file of records. Threads may share it; a failure warns once and never raises.

    Args:
        path: the file, appended to. `{rank}` in it becomes the RANK of the process.
        every: record the steps that this number divides.
        max_slots: rows times tokens of one record.
        max_bytes: size of the file at which recording ends.
        sync_seconds: time between two fsyncs.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        every: int = EVERY,
        max_slots: int = MAX_SLOTS,
        max_bytes: int = MAX_BYTES,
        sync_seconds: float = 10.0,
    ) -> None:
        if every < 1:
            raise ConfigError(f"every is {every}, expected 1 or more")
        rank = os.environ.get("RANK", "")
        self.rank = int(rank) if rank.isdigit() else None
        self.path = os.fspath(path).replace("{rank}", str(self.rank or 0))
        self.every = every
        self.max_slots, self.max_bytes = max_slots, max_bytes
        self._sync_seconds = sync_seconds
        self._journal: Journal | None = None
        self._lock = threading.Lock()
        self._warned = False

    def due(self, step: int) -> bool:
        """Whether this step is one to record. Costs nothing; ask before preparing arrays."""
        return step % self.every == 0

    def record(self, *, step: int, **values: Any) -> bool:
        """Write one record; arguments as for `rlproof.record`. Whether it was written."""
        if not self.due(step):
            return False
        try:
            return self._append(encode(_made(step, values, self.rank, self.max_slots)))
        except Exception as error:  # a recorder must not end a run that took days
            self.warn(f"{type(error).__name__}: {error}")
            return False

    def _append(self, line: bytes) -> bool:
        with self._lock:
            if self._journal is not None and self._journal.gone:
                self._journal.close()
                self._journal = None
            if self._journal is None:
                self._journal = Journal(self.path, self._sync_seconds)
                atexit.unregister(self.close)
                atexit.register(self.close)
            if self._journal.size + len(line) > self.max_bytes:
                self.warn(f"{self.path} has reached {self.max_bytes} bytes: no more is recorded")
                return False
            self._journal.append(line)
            return True

    def warn(self, text: str) -> None:
        """A RuntimeWarning, the first time: a record is missing, and the run goes on."""
        if not self._warned:
            self._warned = True
            warnings.warn(f"rlproof.record: {text}", RuntimeWarning, stacklevel=4)

    def close(self) -> None:
        """Write everything to the disk; a later record opens the file again."""
        with self._lock:
            if self._journal is not None:
                self._journal.close()
                self._journal = None
                atexit.unregister(self.close)


_recorders: dict[tuple[str, int], Recorder] = {}


def record(
    *,
    step: int,
    rewards: Any = None,
    groups: Any = None,
    advantages: Any = None,
    new_logps: Any = None,
    old_logps: Any = None,
    ref_logps: Any = None,
    sampler_logps: Any = None,
    mask: Any = None,
    tokens: Any = None,
    sampled_tokens: Any = None,
    prompts: Any = None,
    repeat_logps: Any = None,
    anchor_logps: Any = None,
    entropy: Any = None,
    loss: Any = None,
    grad: Any = None,
    update: int | None = None,
    objective: str | None = None,
    facts: Mapping[str, Any] | None = None,
    path: str | os.PathLike[str] | None = None,
    every: int | None = None,
) -> bool:
    """Append what one step was computed from to a file, for `rlproof inspect`.

    Costs a copy of the arrays to the host on the steps that are recorded and nothing on others.
    It never raises for what the arrays hold: the first failure is a RuntimeWarning, and what
    could not be recorded is named in the record. It never changes an array.

    Args:
        step: number of the training step, of all ranks alike.
        rewards: one reward a completion (B,), or several (B, K).
        groups: the prompt of each row (B,), numbers or names, or the size of consecutive groups.
        advantages: as the loss is given them, (B,) or (B, T).
        new_logps: log-probs of the policy that is trained (B, T), nats.
        old_logps: those the ratio compares with (B, T), nats.
        ref_logps: those of the reference (B, T), nats.
        sampler_logps: those the engine gave that sampled the tokens (B, T), nats.
        mask: 1 on tokens that the loss counts, 0 elsewhere (B, T). Lists of unequal rows need none.
        tokens: ids that the loss is computed from (B, T).
        sampled_tokens: ids as they came from the sampler (B, T); `tokens`, unless they were made
            into text and back.
        prompts: ids of the prompts (B, S); padding is `facts["pad"]`, unequal lists need none.
        repeat_logps: `new_logps` computed once more, by the same weights in evaluation mode.
        anchor_logps: of the reference on completions that stay the same all run long (R, T).
        entropy: entropy of the policy at every slot (B, T), nats.
        loss: the number that is minimised, for exactly these rows.
        grad: ∂loss/∂new_logps (B, T), which tells far more than the loss; or a gradient norm.
        update: how many updates this batch has already been used for; 0 for the first.
        objective: the published objective that is meant, a name of `rlproof.space.published`.
        facts: other settings by name: `beta`, `clip_low`, `clip_high`, … (`rlproof.watch.facts`).
        path: the file; the default is RLPROOF_RECORD, and without either nothing is done.
        every: record the steps that this divides; the default is RLPROOF_EVERY, or 20.

    Returns:
        Whether a record was written.

    Raises:
        ConfigError: `every`, or RLPROOF_EVERY, is no whole number from 1 on.
    """
    recorder = recorder_of(path, every)
    if recorder is None or not recorder.due(step):
        return False
    return recorder.record(
        step=step, rewards=rewards, groups=groups, advantages=advantages, new_logps=new_logps,
        old_logps=old_logps, ref_logps=ref_logps, sampler_logps=sampler_logps, mask=mask,
        tokens=tokens, sampled_tokens=sampled_tokens, prompts=prompts, repeat_logps=repeat_logps,
        anchor_logps=anchor_logps, entropy=entropy, loss=loss, grad=grad, update=update,
        objective=objective, facts=facts,
    )  # fmt: skip


def recorder_of(
    path: str | os.PathLike[str] | None = None, every: int | None = None
) -> Recorder | None:
    """The recorder of a file, one for all who write to it; None where no file is named.

    Raises:
        ConfigError: `every`, or RLPROOF_EVERY, is no whole number from 1 on.
    """
    target = path if path is not None else os.environ.get("RLPROOF_RECORD")
    if not target:
        return None
    interval = every if every is not None else every_of_environment()
    key = (os.fspath(target), interval)
    if key not in _recorders:
        _recorders[key] = Recorder(target, every=interval)
    return _recorders[key]


def every_of_environment() -> int:
    """RLPROOF_EVERY, or 20.

    Raises:
        ConfigError: it is no whole number from 1 on.
    """
    text = os.environ.get("RLPROOF_EVERY", str(EVERY))
    if not text.isdigit() or int(text) < 1:
        raise ConfigError(f"RLPROOF_EVERY is {text!r}, expected a whole number from 1 on")
    return int(text)


def _made(step: int, values: dict[str, Any], rank: int | None, max_slots: int) -> StepRecord:
    """The record, with as many whole groups of rows as the limit allows."""
    given = {name: value for name, value in values.items() if value is not None}
    facts = dict(given.pop("facts", {}))
    if objective := given.pop("objective", None):
        facts["objective"] = objective
    update, groups = given.pop("update", None), given.pop("groups", None)
    micro_batch = given.pop("micro_batch", None)
    problems: list[str] = list(given.pop("problems", ()))
    scalars = _scalars(given, problems)
    total, kept = _kept_rows(given, groups, max_slots)
    arrays = _arrays(given, kept, problems)
    size = _group_size(groups)
    if groups is not None and size is None:
        arrays["groups"] = pack_groups(groups, kept)
    return StepRecord(
        rlproof=VERSION, step=int(step), update=update, micro_batch=micro_batch, rank=rank,
        arrays=arrays, group_size=size, rows=None if kept is None else total, facts=facts,
        problems=tuple(problems), **scalars,
    )  # fmt: skip


def _scalars(given: dict[str, Any], problems: list[str]) -> dict[str, float | str]:
    """The loss, its scale and the gradient's norm, taken out of `given`."""
    found: dict[str, float | str] = {}
    for name, key in (("loss", "loss"), ("scale", "scale"), ("grad", "grad_norm")):
        if name not in given or (name == "grad" and len(getattr(given[name], "shape", ())) > 0):
            continue
        if isinstance(given[name], list | tuple):
            continue
        try:
            value = given.pop(name)
            number = float(value.detach() if hasattr(value, "detach") else value)
        except (TypeError, ValueError, RuntimeError) as error:
            problems.append(f"{name}: {error}")
        else:
            found[key] = number if math.isfinite(number) else str(number)
    return found


def _kept_rows(given: dict[str, Any], groups: Any, max_slots: int) -> tuple[int | None, int | None]:
    """How many rows there are, and how many are kept; None for all of them."""
    sizes = [_size(value) for value in given.values()]
    rows = max((size[0] for size in sizes), default=0)
    width = max((size[1] for size in sizes), default=1)
    if rows * width <= max_slots:
        return rows, None
    kept = max(1, max_slots // max(width, 1))
    size = _group_size(groups)
    if size is not None:
        kept = max(size, kept - kept % size)
    return rows, min(kept, rows)


def _size(value: Any) -> tuple[int, int]:
    shape = getattr(value, "shape", None)
    if shape is not None:
        return (int(shape[0]) if len(shape) else 0, int(shape[1]) if len(shape) > 1 else 1)
    rows = len(value) if hasattr(value, "__len__") else 0
    nested = rows and hasattr(value[0], "__len__")
    return rows, max(map(len, value)) if nested else 1


def _group_size(groups: Any) -> int | None:
    """The size, where groups are given by one: a number, or a 0-dimensional array of one."""
    if isinstance(groups, int):
        return groups
    if groups is not None and getattr(groups, "shape", None) == ():
        return int(groups)
    return None


def _arrays(given: dict[str, Any], rows: int | None, problems: list[str]) -> dict[str, Packed]:
    arrays: dict[str, Packed] = {}
    for name, value in given.items():
        try:
            if name == "prompts":
                arrays[name] = pack_prompts(value, rows)
            elif is_ragged(value):
                arrays[name], filled = pack_ragged(value, rows)
                if "mask" not in given or name == "mask":
                    arrays["mask"] = filled if name != "mask" else arrays[name]
            else:
                arrays[name] = pack(value, rows)
        except (TypeError, ValueError, RuntimeError, IndexError) as error:
            problems.append(f"{name}: {error}".split("\n")[0])
    return arrays
