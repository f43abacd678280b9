"""A recorded step as arrays that formulas can be asked about.

Shapes: B rows, T slots.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlproof.watch.facts import Facts, facts_of
from rlproof.watch.schema import StepRecord

Array = NDArray[np.float64]
_SLOTS = (
    "new_logps", "old_logps", "ref_logps", "sampler_logps", "repeat_logps", "entropy", "grad",
)  # fmt: skip
IDS = ("tokens", "sampled_tokens", "prompts")
_COARSE = ("float16", "bfloat16")


@dataclass(frozen=True)
class StepSeen:
    """One record, unpacked. Arrays that don't fit the others are left out and named."""

    record: StepRecord
    arrays: dict[str, Array]
    mask: NDArray[np.bool_] | None
    """Which slots count (B, T)."""
    marks: Array | None
    """The mask as it was given."""
    problems: tuple[str, ...] = ()
    declared: Facts = field(default_factory=Facts)
    """What the record says of the run."""
    shared: dict[str, Any] = field(default_factory=dict, repr=False)
    """What is fitted over all steps of a run, for the rules that ask for it."""

    @property
    def step(self) -> float:
        """Its number."""
        return float(self.record.step)

    def get(self, name: str) -> Array | None:
        """An array by the name of `rlproof.record`."""
        return self.arrays.get(name)

    @property
    def whole(self) -> bool:
        """Whether all rows of the batch are here."""
        return self.record.rows is None

    @cached_property
    def loss(self) -> float | None:
        """The loss, also where it is not finite."""
        return None if self.record.loss is None else float(self.record.loss)

    @cached_property
    def groups(self) -> Any:
        """The group of each row, or the size of consecutive groups, or None."""
        packed = self.record.arrays.get("groups")
        return self.record.group_size if packed is None else packed.array()

    @cached_property
    def group_ids(self) -> NDArray[np.int64] | None:
        """The group of each row (B,), numbered; None where it is unknown or does not fit."""
        rewards = self.rewards
        if rewards is None or self.groups is None:
            return None
        rows = len(rewards)
        if isinstance(self.groups, int):
            size = self.groups
            return np.arange(rows) // size if size > 0 and rows % size == 0 else None
        if self.groups.shape != (rows,):
            return None
        return np.unique(self.groups, return_inverse=True)[1].astype(np.int64)

    @cached_property
    def rewards(self) -> Array | None:
        """One reward a row (B,): their sum, where there are several."""
        rewards = self.get("rewards")
        return rewards.sum(1) if rewards is not None and rewards.ndim == 2 else rewards

    @cached_property
    def row_advantages(self) -> Array | None:
        """One advantage a row (B,), or None where they differ within a row."""
        adv = self.get("advantages")
        if adv is None or adv.ndim == 1:
            return adv
        if self.mask is None or adv.shape != self.mask.shape:
            return None
        real = np.where(self.mask, adv, np.nan)
        with np.errstate(all="ignore"):
            some = self.mask.any(1)
            low, high = (
                real[some].min(1, initial=np.inf, where=self.mask[some]),
                real[some].max(1, initial=-np.inf, where=self.mask[some]),
            )
        if not np.array_equal(low, high):
            return None
        rows = np.zeros(len(adv))
        rows[some] = low
        return rows

    @property
    def rounding(self) -> float:
        """How far log-probs of this precision may be off, relative to their size."""
        kinds = {packed.of for packed in self.record.arrays.values()} | {self.declared.precision}
        if kinds & set(_COARSE):
            return 4e-3
        return 1e-5 if "float32" in kinds else 1e-7

    def ids(self, name: str) -> NDArray[np.int64] | None:
        """`tokens`, `sampled_tokens` (B, T) or `prompts` (B, S); None where they don't fit."""
        packed = self.record.arrays.get(name)
        if packed is None or len(packed.s) != 2 or packed.d[1] not in "iuf":
            return None
        ids = packed.array().astype(np.int64)
        rows = self.mask.shape if self.mask is not None and name != "prompts" else ids.shape
        return ids if ids.shape[0] == rows[0] and (name == "prompts" or ids.shape == rows) else None

    def tolerance(self, logps: Array) -> float:
        """How far log-probs that were computed twice may be apart in the mean, nats."""
        return 4 * self.rounding * (1 + float(np.abs(logps).mean()))

    @cached_property
    def ended(self) -> NDArray[np.bool_] | None:
        """Whether each completion chose an end token (B,); needs the facts `eos` and `longest`.

        A row shorter than the limit has ended. Padding may look like an end token, but a row
        that was cut off has none.
        """
        tokens, facts = self.ids("tokens"), self.declared
        if tokens is None or facts.eos is None or facts.longest is None:
            return None
        if tokens.shape[1] < facts.longest:
            return np.ones(len(tokens), bool)
        return np.asarray(np.isin(tokens, facts.eos).any(1))

    @property
    def lengths(self) -> Array | None:
        """Real tokens of each row (B,)."""
        return None if self.mask is None else self.mask.sum(1).astype(float)


def unpack(record: StepRecord, shared: dict[str, Any] | None = None) -> StepSeen:
    """The arrays of a record, as far as they fit one batch; `shared` is the run's own."""
    arrays: dict[str, Array] = {}
    problems = list(record.problems)
    for name, packed in record.arrays.items():
        if name not in ("groups", "mask", *IDS):
            arrays[name] = packed.array().astype(float)
    for name in ("rewards", "advantages"):
        if name in arrays and arrays[name].ndim == 2 and arrays[name].shape[1] == 1:
            arrays[name] = arrays[name][:, 0]
        if name in arrays and arrays[name].ndim not in (1, 2):
            problems.append(f"{name} is {arrays.pop(name).shape}, expected one or two axes")
    shape = _shape(arrays) or _of_tokens(record)
    odd = [name for name in _SLOTS if name in arrays and arrays[name].shape != shape]
    problems += [f"{name} is {arrays.pop(name).shape}, expected {shape}" for name in odd]
    marks, mask = _mask(record, shape, problems)
    rows = shape[0] if shape else None
    by_row = [name for name in ("rewards", "advantages") if name in arrays and shape]
    odd = [name for name in by_row if arrays[name].shape[:1] != (rows,)]
    problems += [f"{name} has {len(arrays.pop(name))} rows, expected {rows}" for name in odd]
    try:
        declared = facts_of(record.facts)
    except ValueError as error:
        problems.append(str(error))
        declared = Facts()
    shared = {} if shared is None else shared
    return StepSeen(record, arrays, mask, marks, tuple(problems), declared, shared)


def _shape(arrays: dict[str, Array]) -> tuple[int, ...] | None:
    """(B, T) of the log-probs."""
    return next((arrays[n].shape for n in _SLOTS if n in arrays and arrays[n].ndim == 2), None)


def _of_tokens(record: StepRecord) -> tuple[int, ...] | None:
    """(B, T) of a record of completions without log-probs."""
    packed = record.arrays.get("tokens")
    return packed.s if packed is not None and len(packed.s) == 2 else None


def _mask(
    record: StepRecord, shape: tuple[int, ...] | None, problems: list[str]
) -> tuple[Array | None, NDArray[np.bool_] | None]:
    packed = record.arrays.get("mask")
    if shape is None:
        return None, None
    if packed is None:
        return None, np.ones(shape, bool)
    marks = packed.array().astype(float)
    if marks.shape != shape:
        problems.append(f"mask is {marks.shape}, expected {shape}")
        return None, None
    return marks, marks > 0
