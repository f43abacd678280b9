"""Call one function on one set of arguments: value, gradient, side effects, or the error."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from rlproof.bind.child.arrays import (
    NotPlainError,
    build,
    has_gradient,
    is_mlx,
    is_tensor,
    plain,
    scalar_of,
)
from rlproof.bind.child.errors import describe_error
from rlproof.bind.child.guard import GUARD
from rlproof.bind.child.load import Missing, UnavailableError

Spec = dict[str, Any]
_STEP = 1e-5  # central differences: rounding 1e-16/1e-5, truncation 1e-10


def perform(module: ModuleType, spec: Spec) -> Spec:
    """Run the call that `spec` describes; never raises for what the script does."""
    function = getattr(module, spec["function"], None)
    if function is None:
        return {"error": {"type": "Missing", "message": f"{spec['function']} is not defined"}}
    try:
        with GUARD.strict():
            if isinstance(function, Missing):
                function()
            return _evaluate(function, spec)
    except NotPlainError as error:
        return {"error": {"type": "NotPlain", "message": str(error)}}
    except UnavailableError as error:
        return {"error": {"type": "Missing", "message": str(error)}}
    except BaseException as error:
        return {"error": describe_error(error, str(module.__file__))}


def _evaluate(function: Callable[..., Any], spec: Spec) -> Spec:
    arguments = _arguments(spec)
    before = {name: _fingerprint(value) for name, value in arguments.items()}
    leaf = _leaf(spec, arguments)
    seed_everything(spec.get("seed", 0))
    result = _apply(function, arguments, spec)
    mutated = [name for name, value in arguments.items() if _fingerprint(value) != before[name]]
    if spec["want"] == "plain":
        result = _or_records(result, spec, {name: arguments[name] for name in mutated})
        return {"value": plain(result), "mutated": mutated, **_flow(spec, result)}
    scalar, where, places = scalar_of(result, spec.get("pick"))
    out: Spec = {"value": plain(scalar), "mutated": mutated, "where": where, "places": places}
    if leaf is not None:
        out["gradient"], out["mode"] = _autograd(scalar, leaf)
    elif spec.get("gradient") and is_mlx(arguments[spec["gradient"]]):
        out["gradient"], out["mode"] = _by_mlx(function, spec), "autograd"
    elif spec.get("gradient"):
        out["gradient"], out["mode"] = _differences(function, spec), "differences"
    return out


def _apply(function: Callable[..., Any], arguments: Spec, spec: Spec) -> Any:
    """Call by keyword, except for the first `by_position` arguments."""
    names = list(arguments)[: spec.get("by_position", 0)]
    rest = {name: value for name, value in arguments.items() if name not in names}
    return function(*(arguments[name] for name in names), **rest)


def _arguments(spec: Spec) -> Spec:
    return {name: _argument(kind, value) for name, (kind, value) in spec["arguments"].items()}


def _argument(kind: str, value: Any) -> Any:
    return _FUNCTIONS[value] if kind == "function" else build(kind, value)


def _flow(spec: Spec, result: Any) -> Spec:
    """Where asked for: whether a gradient can come back from any part of what was returned."""
    return {"differentiable": has_gradient(result)} if spec.get("asks_gradient") else {}


def _or_records(result: Any, spec: Spec, changed: Spec) -> Any:
    """What was returned; where that is nothing, the records that were changed, as they now are."""
    given = (value for name, value in changed.items() if spec["arguments"][name][0] == "records")
    return next(given, None) if result is None else result


def _leaf(spec: Spec, arguments: Spec) -> Any:
    """The tensor to differentiate by, when the arguments are tensors."""
    value: Any = arguments.get(spec.get("gradient") or "")
    return value.requires_grad_(True) if is_tensor(value) else None


def _autograd(scalar: Any, leaf: Any) -> tuple[Any, str]:
    import torch

    if not is_tensor(scalar) or not scalar.requires_grad:
        return torch.zeros_like(leaf).tolist(), "cut"
    (gradient,) = torch.autograd.grad(scalar.reshape(()), leaf, allow_unused=True)
    return (torch.zeros_like(leaf) if gradient is None else gradient).tolist(), "autograd"


def _by_mlx(function: Callable[..., Any], spec: Spec) -> Any:
    """MLX differentiates functions; its `exp` has single precision, too coarse for differences."""
    import mlx.core as mx

    arguments = _arguments(spec)
    name = spec["gradient"]

    def value(leaf: Any) -> Any:
        seed_everything(spec.get("seed", 0))
        return scalar_of(_apply(function, {**arguments, name: leaf}, spec), spec.get("pick"))[0]

    return mx.grad(value)(arguments[name]).tolist()


def _differences(function: Callable[..., Any], spec: Spec) -> Any:
    """Central finite differences of the value by every entry of one argument."""
    name = spec["gradient"]
    kind, value = spec["arguments"][name]

    def at(path: tuple[int, ...], step: float) -> float:
        shifted = {**spec["arguments"], name: [kind, _shift(value, path, step)]}
        arguments = _arguments({"arguments": shifted})
        seed_everything(spec.get("seed", 0))
        return float(plain(scalar_of(_apply(function, arguments, spec), spec.get("pick"))[0]))

    def walk(part: Any, path: tuple[int, ...]) -> Any:
        if isinstance(part, list):
            return [walk(item, (*path, i)) for i, item in enumerate(part)]
        return (at(path, _STEP) - at(path, -_STEP)) / (2 * _STEP)

    return walk(value, ())


def _shift(value: Any, path: tuple[int, ...], step: float) -> Any:
    if not path:
        return value + step
    return [_shift(item, path[1:], step) if i == path[0] else item for i, item in enumerate(value)]


def _fingerprint(value: Any) -> Any:
    try:
        return repr(plain(value))
    except NotPlainError:
        return None


def seed_everything(seed: int = 0) -> None:
    """The same random numbers for every call, in every library that is loaded."""
    random.seed(seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(seed)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(seed)


def _quadratic(theta: Any) -> float:
    """Σ (i+1)·θᵢ², whose gradient 2(i+1)·θᵢ is exact under central differences."""
    flat = [x for row in plain(theta) for x in (row if isinstance(row, list) else [row])]
    return float(sum((i + 1) * x * x for i, x in enumerate(flat)))


def _raises(_theta: Any) -> float:
    raise ArithmeticError("the function of the parameters raised")


def _reads_its_reward(response: str, *_: object) -> dict[str, float]:
    """A reward function: the response is the reward, written out."""
    reward = float(response)
    return {"reward": reward, "format_reward": reward, "answer_reward": reward}


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "quadratic": _quadratic,
    "raises": _raises,
    "reads its reward": _reads_its_reward,
}


def call_with_state(module: ModuleType, spec: Spec) -> Spec:
    """As `perform`, and also what the arguments hold afterwards, even after an exception."""
    function = getattr(module, spec["function"], None)
    arguments = _arguments(spec)
    out: Spec = {}
    try:
        with GUARD.strict():
            seed_everything()
            out["value"] = plain(_apply(function, arguments, spec))  # type: ignore[arg-type]
    except BaseException as error:
        out["error"] = describe_error(error, str(module.__file__))
    out["after"] = {name: _state(value) for name, value in arguments.items() if not callable(value)}
    return out


def _state(value: Any) -> Any:
    """What an argument holds, or nothing where the script put something else than numbers."""
    try:
        return plain(value)
    except NotPlainError:
        return None
