"""Run a training function with its parts wrapped, and write down every call of a part."""

from __future__ import annotations

import functools
import inspect
import json
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from rlproof.bind.child.arrays import NotPlainError, plain
from rlproof.bind.child.calls import seed_everything
from rlproof.bind.child.errors import describe_error
from rlproof.bind.child.guard import GUARD, RefusedError
from rlproof.bind.child.load import Missing

Spec = dict[str, Any]


class _Enough(BaseException):
    """The record is long enough.

    Raised inside a wrapped call; not an `Exception`, so that a training loop's own
    `except Exception` doesn't swallow it.
    """


class Recorder:
    """The calls seen so far. Values are kept once each and referred to by index."""

    def __init__(self, module: ModuleType, limit: int) -> None:
        self.module = module
        self.limit = limit
        self.calls: list[Spec] = []
        self.values: list[Any] = []
        self._index: dict[str, int] = {}
        self._alive: list[Any] = []  # keeps ids unique while they are compared
        self._source: dict[int, int] = {}

    def wrap(self, name: str) -> None:
        """Replace a module-level function by one that records its calls."""
        original = getattr(self.module, name)
        signature = inspect.signature(original)

        @functools.wraps(original)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            return self._call(name, original, signature, args, kwargs)

        setattr(self.module, name, recorded)

    def _call(
        self,
        name: str,
        original: Callable[..., Any],
        signature: inspect.Signature,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        if len(self.calls) >= self.limit:
            raise _Enough
        number = len(self.calls)
        call: Spec = {"name": name, "line": self._line()}
        self.calls.append(call)
        bound = signature.bind(*args, **kwargs)
        call["given"] = sorted(bound.arguments)
        bound.apply_defaults()
        call["from"] = {
            key: self._source[id(value)]
            for key, value in bound.arguments.items()
            if id(value) in self._source
        }
        call["args"] = {key: self._keep(value) for key, value in bound.arguments.items()}
        result = original(*args, **kwargs)
        call["result"] = self._keep(result)
        if isinstance(result, list) or hasattr(result, "shape"):
            self._alive.append(result)
            self._source[id(result)] = number
        return result

    def _line(self) -> int:
        """The line of the script that made the call."""
        frame = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename != self.module.__file__:
            if frame.f_back is None:
                return 0
            frame = frame.f_back
        return frame.f_lineno if frame else 0

    def _keep(self, value: Any) -> int | None:
        try:
            written = plain(value)
        except NotPlainError:
            return None
        key = json.dumps(written)
        if key not in self._index:
            self._index[key] = len(self.values)
            self.values.append(written)
        return self._index[key]


def record(module: ModuleType, spec: Spec) -> Spec:
    """Call `spec["function"]` with the functions `spec["wrap"]` recorded.

    What only the sandbox lacks (a refused write, a package, memory) ends the run, but is no
    error of the script.
    """
    parts = {name: getattr(module, name, None) for name in spec["wrap"]}
    originals = {name: part for name, part in parts.items() if not isinstance(part, Missing | None)}
    recorder = Recorder(module, spec["limit"])
    out: Spec = {"ended": "returned"}
    for name in originals:
        recorder.wrap(name)
    try:
        with GUARD.strict():
            seed_everything()
            getattr(module, spec["function"])(**spec["kwargs"])
    except _Enough:
        out["ended"] = "enough"
    except (RefusedError, ImportError, MemoryError) as error:
        out["ended"] = "refused"
        out["refused"] = describe_error(error, str(module.__file__))
    except BaseException as error:
        out["ended"] = "raised"
        out["error"] = describe_error(error, str(module.__file__))
    finally:
        for name, original in originals.items():
            setattr(module, name, original)
    return out | {"calls": recorder.calls, "values": recorder.values}
