"""Arguments in, results out: nested lists to the script's kind of array and back."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any

from rlproof.bind.child.load import Missing
from rlproof.bind.child.records import Record, make

_MAX_ITEMS = 200_000
_LARGEST = 2**1023


class NotPlainError(TypeError):
    """A value that can't be written as nested lists of numbers."""


def build(kind: str, value: Any) -> Any:
    """An argument of this kind: `raw`, `list`, or `<numpy|torch>:<float|int|bool|float32>`.

    And what a function that asks a model takes: `model`, `tokenizer`, `tensors` by name, and
    `missing`, which says why at any use; and `records` that hold rewards.
    """
    if kind == "raw":
        return value
    if kind == "missing":
        return Missing(value)
    if kind in ("model", "tokenizer", "tensors"):
        return _for_a_model(kind, value)
    if kind == "records":
        return make(value, lambda reward: build(value["kind"], reward))
    if kind == "list":
        return _copy(value)
    library, _, dtype = kind.partition(":")
    if library == "numpy":
        import numpy as np

        types: dict[str, Any] = {"int": np.int64, "bool": np.bool_, "float32": np.float32}
        return np.array(value, dtype=types.get(dtype, np.float64))
    if library == "mlx":
        import mlx.core as mx

        mx.set_default_device(mx.cpu)  # a GPU has no double precision
        sorts = {"int": mx.int32, "bool": mx.bool_, "float32": mx.float32}
        return mx.array(value, dtype=sorts.get(dtype, mx.float64))
    import torch

    kinds = {"int": torch.long, "bool": torch.bool, "float32": torch.float32}
    return torch.tensor(value, dtype=kinds.get(dtype, torch.float64))


def _for_a_model(kind: str, value: Any) -> Any:
    from rlproof.bind.child import standin

    if kind == "tensors":
        return standin.Tensors({key: build(*given) for key, given in value.items()})
    return standin.model(value) if kind == "model" else standin.tokenizer(value)


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
    if isinstance(value, Record):
        value = vars(value)
    if isinstance(value, dict):
        return {str(key): _plain(item, left) for key, item in value.items()}
    if isinstance(value, Missing):
        raise NotPlainError("a value that could not be had")
    if hasattr(value, "tolist"):
        return _plain(value.tolist(), left)
    raise NotPlainError(f"a {type(value).__name__}")


def is_tensor(value: Any) -> bool:
    """Whether this is a torch tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_mlx(value: Any) -> bool:
    """Whether this is an array of MLX, without importing it."""
    core = sys.modules.get("mlx.core")
    return core is not None and isinstance(value, core.array)


def has_gradient(value: Any) -> bool:
    """Whether this, or anything in it, is a tensor that autograd can go back from."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return any(has_gradient(item) for item in value)
    return is_tensor(value) and bool(value.requires_grad)


def scalar_of(result: Any, pick: str | None = None) -> tuple[Any, str, list[str]]:
    """The loss inside what a function returned, where it was found, and where else it may be.

    A loss that is not reduced to a number is summed, and the place then ends in `.sum()`.

    Raises:
        NotPlainError: there is no number in it that could be the loss.
    """
    places = list(_places(result))
    scalars = {where: _number(value) for value, where in places if _is_scalar(value)}
    if scalars:
        where = pick if pick in scalars else next(iter(scalars))
        return scalars[where], where, list(scalars)
    for value, where in places:
        if hasattr(value, "sum") and hasattr(value, "ndim"):
            return value.sum(), f"{where}.sum()", []
        if isinstance(value, list) and value and (numbers := _numbers(value)) is not None:
            return sum(numbers), f"{where}.sum()", []
    raise NotPlainError(f"returned {describe(result)}, where a loss was expected")


def _places(result: Any) -> Iterator[tuple[Any, str]]:
    """Where a loss may stand: under a key or attribute named so, first in a tuple, alone."""
    if isinstance(result, dict):
        named = [key for key in result if "loss" in str(key).lower()]
        yield from ((result[key], f"[{key!r}]") for key in [*named, *result])
    elif isinstance(result, tuple):
        names = getattr(result, "_fields", range(len(result)))
        yield from ((item, f"[{name!r}]") for name, item in zip(names, result, strict=True))
    elif hasattr(result, "loss"):
        yield result.loss, ".loss"
    else:
        yield result, ""


def _numbers(value: list[Any]) -> list[float] | None:
    """The numbers of a nested list, or None if anything else is in it."""
    found: list[float] = []
    for item in value:
        inner = _numbers(item) if isinstance(item, list) else [item]
        if inner is None or not all(isinstance(x, int | float) for x in inner):
            return None
        found += inner
    return found


def _is_scalar(value: Any) -> bool:
    if isinstance(value, bool | str) or value is None:
        return False
    if isinstance(value, int | float):
        return True
    return hasattr(value, "item") and math.prod(getattr(value, "shape", (2,))) == 1


def _number(value: Any) -> Any:
    """An array of one entry as a number of its own library."""
    return value if isinstance(value, int | float) else value.reshape(())


def describe(value: Any) -> str:
    """A short, deterministic description of a value for a message."""
    if value is None:
        return "None"
    if isinstance(value, bool | int | float | str):
        return f"{type(value).__name__} {str(value)[:40]!r}"
    shape = getattr(value, "shape", None)
    size = f" of shape {tuple(shape)}" if shape is not None else ""
    return f"a {type(value).__name__}{size}"
