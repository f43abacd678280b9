"""One rehearsal: calls of the script's functions with stand-ins, and what they did."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from rlproof.bind.child.arrays import NotPlainError, plain
from rlproof.bind.child.calls import seed_everything
from rlproof.bind.child.errors import describe_error, one_line
from rlproof.bind.child.guard import GUARD, RefusedError
from rlproof.bind.child.load import Missing, UnavailableError
from rlproof.bind.child.rehearsal.settings import NoStandInError, Settings

Spec = dict[str, Any]
_PACKED = (
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
    inspect.Parameter.POSITIONAL_ONLY,
)


def rehearse(module: ModuleType, spec: Spec) -> Spec:
    """Call `spec["calls"]` one after the other, with stand-ins as `spec["settings"]` says.

    What only the stage lacks ends the run as `refused`, and is no error of the script.
    """
    try:
        import torch
    except ImportError:
        return {"ended": "refused", "reason": "needs torch, which is not installed"}
    from rlproof.bind.child.rehearsal.cast import Cast
    from rlproof.bind.child.rehearsal.recorder import Enough, Recorder

    recorder = Recorder(Settings(**spec["settings"]))
    out: Spec = {"ended": "returned"}
    kept = dict(vars(module))
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)  # what differs by rounding alone must not count
    try:
        with GUARD.strict(), _watched_steps(recorder):
            seed_everything()
            cast = Cast(module, recorder, spec["uses"])
            cast.take_globals()
            out["losses"] = _watch(module, recorder, spec.get("watch", []))
            seed_everything()
            for name in spec["calls"]:
                result = _called(module, cast, name)
                cast.latest = result if torch.is_tensor(result) else None
            out |= _finished(recorder, result)
    except Enough:
        out["ended"] = "enough"
    except (UnavailableError, NoStandInError, RefusedError, ImportError, MemoryError) as error:
        out |= {"ended": "refused", "reason": one_line(error)}
    except BaseException as error:
        out |= {"ended": "raised", "error": describe_error(error, str(module.__file__))}
    finally:
        torch.set_default_dtype(before)
        vars(module).clear()
        vars(module).update(kept)
    return out | recorder.answer()


def _called(module: ModuleType, cast: Any, name: str) -> Any:
    owner, _, method = name.rpartition(".")
    if not owner:
        function = getattr(module, method, None)
        _there(function, name)
        return _end(function(**cast.arguments(function)))  # type: ignore[misc]
    kind = getattr(module, owner, None)
    _there(kind, owner)
    bound = getattr(cast.instance(kind), method)
    return _end(bound(**cast.arguments(bound)))


def _end(result: Any) -> Any:
    """A generator of steps is run to its end."""
    if inspect.isgenerator(result):
        for _ in result:
            pass
        return None
    if inspect.iscoroutine(result):
        result.close()
        raise UnavailableError("it is a coroutine")
    return result


def _there(value: Any, name: str) -> None:
    if value is None:
        raise UnavailableError(f"`{name}` is not defined")
    if isinstance(value, Missing):
        value()


def _finished(recorder: Any, result: Any) -> Spec:
    """What a function that makes no step itself hands back: a loss is differentiated."""
    import torch

    made = _differentiable(result)
    if made is not None and not recorder.steps:
        made.sum().backward()
        recorder.before_step(None)
        recorder.steps[-1]["changed"] = recorder.steps[-1]["size"] > 0
        return {"value": made.detach().tolist()}
    if isinstance(result, Mapping):
        return {"columns": _origins(recorder, result)}
    if torch.is_tensor(result) or isinstance(result, list | float | int):
        return {"value": _plain(result)}
    return {}


def _differentiable(result: Any) -> Any:
    import torch

    parts = [result]
    if isinstance(result, tuple | list):
        parts = list(result)
    elif isinstance(result, Mapping):
        parts = [result.get("loss"), *result.values()]
    return next((p for p in parts if torch.is_tensor(p) and p.requires_grad), None)


def _origins(recorder: Any, result: Mapping[Any, Any]) -> Spec:
    """By key, for each entry that is handed back, the rows of the batch that have the same."""
    import torch

    known = dict(recorder.columns.values())
    found: Spec = {}
    for key, value in result.items():
        column = known.get(key)
        if (
            torch.is_tensor(value)
            and torch.is_tensor(column)
            and value.shape[1:] == column.shape[1:]
            and not bool(((column == 0) | (column == 1)).all())  # masks are alike by chance
        ):
            rows = [[int(i) for i, c in enumerate(column) if torch.equal(c, v)] for v in value]
            found[str(key)] = rows
    return found


def _plain(value: Any) -> Any:
    try:
        return plain(value)
    except NotPlainError:
        return None


@contextmanager
def _watched_steps(recorder: Any) -> Iterator[None]:
    """Every optimizer's steps are seen."""
    from torch.optim.optimizer import (
        register_optimizer_step_post_hook,
        register_optimizer_step_pre_hook,
    )

    one = register_optimizer_step_pre_hook(lambda o, *_: recorder.before_step(o))
    other = register_optimizer_step_post_hook(lambda *_: recorder.after_step())
    try:
        yield
    finally:
        one.remove()
        other.remove()


def _watch(module: ModuleType, recorder: Any, names: list[str]) -> list[Spec]:
    """Wrap functions: which column of a batch each of their arguments is, and what it changes."""
    calls: list[Spec] = []
    for name in names:
        original = getattr(module, name, None)
        if original is None or isinstance(original, Missing):
            continue
        signature = inspect.signature(original)

        @functools.wraps(original)
        def watched(
            *args: Any, _original: Any = original, _signature: Any = signature,
            _name: str = name, **kwargs: Any,
        ) -> Any:  # fmt: skip
            if len(calls) < 4:
                bound = _signature.bind(*args, **kwargs)
                bound.apply_defaults()
                found = {key: _column(recorder, v) for key, v in bound.arguments.items()}
                seen = {key: column for key, column in found.items() if column}
                call = {"name": _name, "columns": seen, "effect": {}}
                calls.append(call)
                plain = all(p.kind not in _PACKED for p in _signature.parameters.values())
                call["effect"] = {
                    k: not plain or _matters(_original, bound.arguments, k) for k in seen
                }
            return _original(*args, **kwargs)

        setattr(module, name, watched)
    return calls


def _column(recorder: Any, value: Any) -> str:
    """The name that a tensor, or what it is a part of, was handed out under."""
    import torch

    if not torch.is_tensor(value):
        return ""
    own = value.untyped_storage().data_ptr()
    for name, tensor in recorder.columns.values():
        if torch.is_tensor(tensor) and tensor.untyped_storage().data_ptr() == own:
            return str(name)
    return ""


def _matters(function: Any, arguments: Spec, key: str) -> bool:
    """Whether another tensor in its place gives another result, as far as both can be had.

    Numbers that are 0, such as the weight of a term, are taken as they are and as 0.1.
    """
    import torch

    weighed = {k: 0.1 if type(v) in (int, float) and v == 0 else v for k, v in arguments.items()}
    for given in (arguments, weighed):
        try:
            with torch.no_grad():
                one = function(**given)
                other = function(**{**given, key: 1 - given[key]})
        except Exception:  # whatever a loss makes of other numbers
            return True
        first = one[0] if isinstance(one, tuple) else one
        second = other[0] if isinstance(other, tuple) else other
        if not (torch.is_tensor(first) and torch.equal(first, second)):
            return True
    return False
