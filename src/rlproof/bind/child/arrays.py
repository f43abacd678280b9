"""Arguments in, results out: nested lists to the script's kind of array and back."""

from __future__ import annotations

import math
import sys
from typing import Any

_MAX_ITEMS = 200_000
_LARGEST = 2**1023


class NotPlainError(TypeError):
    """A value that can't be written as nested lists of numbers."""


def build(kind: str, value: Any) -> Any:
    """An argument of this kind: `raw`, `list`, or `<numpy|torch>:<float|int|bool|float32>`."""
    if kind == "raw":
        return value
    if kind == "list":
        return _copy(value)
    library, _, dtype = kind.partition(":")
    if library == "numpy":
        import numpy as np

        types: dict[str, Any] = {"int": np.int64, "bool": np.bool_, "float32": np.float32}
        return np.array(value, dtype=types.get(dtype, np.float64))
    import torch

    kinds = {"int": torch.long, "bool": torch.bool, "float32": torch.float32}
    return torch.tensor(value, dtype=kinds.get(dtype, torch.float64))


def _copy(value: Any) -> Any:
    return [_copy(item) for item in value] if isinstance(value, list) else value


def plain(value: Any) -> Any:
    """Nested lists, numbers, strings and None; NaN and infinities stay floats.

    Raises:
        NotPlainError: anything else, or more numbers than are worth sending.
    """
    left = [_MAX_ITEMS]
    return _plain(value, left)


def _plain(value: Any, left: list[int]) -> Any:
    left[0] -= 1
    if left[0] < 0:
        raise NotPlainError(f"more than {_MAX_ITEMS} numbers")
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise NotPlainError("a whole number too large for a float")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if is_tensor(value):
        return _plain(value.detach().cpu().tolist(), left)
    if isinstance(value, list | tuple):
        return [_plain(item, left) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item, left) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return _plain(value.tolist(), left)
    raise NotPlainError(f"a {type(value).__name__}")


def is_tensor(value: Any) -> bool:
    """Whether this is a torch tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def scalar_of(result: Any) -> tuple[Any, str]:
    """The loss inside what a function returned, and where it was found.

    Raises:
        NotPlainError: there is no number in it that could be the loss.
    """
    if isinstance(result, dict):
        keys = [key for key in result if "loss" in str(key).lower()] or list(result)
        for key in keys:
            if _is_scalar(result[key]):
                return result[key], f"[{key!r}]"
    elif isinstance(result, tuple | list) and not isinstance(result, str):
        for i, item in enumerate(result):
            if _is_scalar(item):
                return item, f"[{i}]" if isinstance(result, tuple) or i else "[0]"
    elif _is_scalar(result):
        return result, ""
    elif hasattr(result, "sum") and hasattr(result, "ndim"):
        return result.sum(), ".sum()"
    raise NotPlainError(f"returned {describe(result)}, where a loss was expected")


def _is_scalar(value: Any) -> bool:
    if isinstance(value, bool | str) or value is None:
        return False
    if isinstance(value, int | float):
        return True
    return hasattr(value, "item") and math.prod(getattr(value, "shape", (2,))) == 1


def describe(value: Any) -> str:
    """A short, deterministic description of a value for a message."""
    if value is None:
        return "None"
    if isinstance(value, bool | int | float | str):
        return f"{type(value).__name__} {str(value)[:40]!r}"
    shape = getattr(value, "shape", None)
    size = f" of shape {tuple(shape)}" if shape is not None else ""
    return f"a {type(value).__name__}{size}"
