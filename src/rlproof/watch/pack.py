"""Arrays of any library as bytes, without importing that library.

A torch tensor is read through its memory, so a torch that was built without NumPy serves too;
everything else goes through `numpy.asarray`, which JAX and lists understand.
Shapes: B rows, T slots.
"""

from __future__ import annotations

import ctypes
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from rlproof.errors import quoted

Kind = Literal["real", "whole"]
_HALF = ("bfloat16", "float16", "half")
_BY_NAME = {
    "float32": "<f4", "float64": "<f8", "uint8": "|u1", "int8": "|i1", "int16": "<i2",
    "int32": "<i4", "int64": "<i8", "bool": "|b1",
}  # fmt: skip


_LONGEST = 1 << 24
"""Of one axis. Bytes bound all others, but not those of an array with an empty axis."""


class Packed(msgspec.Struct, frozen=True):
    """One array: NumPy's name of the type, the shape, the raw bytes, the type it came from."""

    d: str
    s: tuple[int, ...]
    b: bytes
    of: str

    def array(self) -> NDArray[Any]:
        """The array again, read-only.

        Raises:
            ValueError: the bytes don't fill the shape, or are no numbers.
        """
        if self.d not in _BY_NAME.values():
            raise ValueError(f"an array of {quoted(self.d)}, expected numbers")
        if any(not 0 <= size <= _LONGEST for size in self.s):
            raise ValueError(f"an array of shape {quoted(self.s)}")
        return np.frombuffer(self.b, np.dtype(self.d)).reshape(self.s)


def pack(value: Any, rows: int | None = None) -> Packed:
    """The first `rows` rows of an array, or all of them.

    Half precision is widened to float32, and its name kept: a later comparison needs to know how
    fine the numbers were.

    Raises:
        TypeError: it holds something else than numbers.
        ValueError: rows of different lengths, outside of `pack_ragged`.
    """
    if rows is not None:
        value = value[:rows]
    if hasattr(value, "data_ptr") and hasattr(value, "detach"):
        return _of_tensor(value)
    array = np.asarray(value)
    name = array.dtype.name
    if name in _HALF:
        array = array.astype(np.float32)
    if array.dtype.name not in _BY_NAME:
        raise TypeError(f"an array of {name}, expected numbers")
    little = np.ascontiguousarray(array, np.dtype(_BY_NAME[array.dtype.name]))
    return Packed(little.dtype.str, tuple(array.shape), little.tobytes(), name)


def _of_tensor(tensor: Any) -> Packed:
    """The memory of a tensor, on the host."""
    name = str(tensor.dtype).removeprefix("torch.")
    tensor = tensor.detach()
    if name in _HALF:
        tensor = tensor.float()
    tensor = tensor.cpu().contiguous()
    kept = str(tensor.dtype).removeprefix("torch.")
    if kept not in _BY_NAME:
        raise TypeError(f"a tensor of {name}, expected numbers")
    size = tensor.numel() * tensor.element_size()
    raw = ctypes.string_at(tensor.data_ptr(), size) if size else b""
    return Packed(_BY_NAME[kept], tuple(tensor.shape), raw, name)


def is_ragged(value: Any) -> bool:
    """Whether these are lists of different lengths."""
    return (
        isinstance(value, list | tuple)
        and len(value) > 0
        and all(hasattr(row, "__len__") for row in value)
        and len({len(row) for row in value}) > 1
    )


NO_TOKEN = -1
"""What unequal prompts are filled up with: no id of any vocabulary."""


def pack_prompts(value: Any, rows: int | None = None) -> Packed:
    """Ids of prompts (B, S); unequal lists are filled up on the left with `NO_TOKEN`."""
    if not is_ragged(value):
        return pack(value, rows)
    lists = list(value)[:rows]
    width = max(map(len, lists), default=0)
    return pack([[NO_TOKEN] * (width - len(row)) + list(row) for row in lists])


def pack_ragged(value: Any, rows: int | None = None) -> tuple[Packed, Packed]:
    """Lists of different lengths, filled up with zeros (B, T), and the mask of what was there."""
    lists = list(value)[:rows]
    width = max((len(row) for row in lists), default=0)
    filled = np.zeros((len(lists), width))
    mask = np.zeros((len(lists), width), np.uint8)
    for i, row in enumerate(lists):
        filled[i, : len(row)] = row
        mask[i, : len(row)] = 1
    return pack(filled), pack(mask)


def pack_groups(groups: Any, rows: int | None = None) -> Packed:
    """The group of each row as whole numbers; names are numbered in order of appearance."""
    if hasattr(groups, "data_ptr"):
        return pack(groups, rows)
    listed = groups.tolist() if hasattr(groups, "tolist") else list(groups)
    numbers: dict[Any, int] = {}
    ids = [numbers.setdefault(name, len(numbers)) for name in listed[:rows]]
    return pack(np.array(ids, np.int32))
