"""Each of the guards can fail: a reader that does what it must not is caught."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from rlproof.errors import ConfigError
from tests.fuzz import targets
from tests.fuzz.guided import place
from tests.fuzz.targets import Target, held
from tests.fuzz.watching import Hung


class _Harmful:
    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return os.getcwd, ()


def _writes(path: str) -> None:
    Path(path).with_name("new").write_text("x")


def _writes_without_python(path: str) -> None:
    """An audit hook does not see this; the folder shows it."""
    import sqlite3

    store = sqlite3.connect(Path(path).with_name("new.db"))
    store.execute("CREATE TABLE t (x)")
    store.commit()
    store.close()


def _runs_on(path: str) -> None:
    while True:
        try:
            len(path)
        except Exception:
            continue


WRONG: dict[str, tuple[Callable[[str], None], type[BaseException], str]] = {
    "write": (_writes, AssertionError, "open"),
    "native write": (_writes_without_python, AssertionError, "a file was written"),
    "delete": (os.remove, AssertionError, "os.remove"),
    "change": (lambda path: Path(path).chmod(0o600), AssertionError, "os.chmod"),
    "process": (lambda path: subprocess.run([sys.executable, "-c", ""]), AssertionError, "Popen"),
    "pickle": (lambda path: pickle.loads(pickle.dumps(_Harmful())), AssertionError, "find_class"),
    "hang": (_runs_on, Hung, "more than"),
    "crash": (lambda path: {}["x"], KeyError, "x"),
    "recursion": (lambda path: _deep(path), RecursionError, "recursion"),
    "warning": (lambda path: warnings.warn("odd", stacklevel=1), UserWarning, "odd"),
    "plain error": (lambda path: int("x"), ValueError, "int"),
}  # fmt: skip


def _deep(path: str) -> None:
    _deep(path)


@pytest.mark.parametrize("name", WRONG)
def test_a_reader_that_misbehaves_is_caught(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, kind, said = WRONG[name]
    monkeypatch.setitem(targets.TARGETS, "wrong", Target("file", run))
    with pytest.raises(kind, match=said):
        held("wrong", b"x", tmp_path, 0.2 if kind is Hung else 10)


def test_an_error_of_the_user_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(path: str) -> None:
        raise ConfigError("no")

    monkeypatch.setitem(targets.TARGETS, "refuses", Target("file", refuses))
    assert held("refuses", b"x", tmp_path) == "no"


def test_a_find_is_called_by_its_place() -> None:
    from rlproof.read.source import cell_at

    with pytest.raises(TypeError) as caught:
        cell_at((), 0)[0][0]  # type: ignore[index]
    assert place(caught.value).startswith("TypeError-test_watching-")
    with pytest.raises(TypeError) as caught:
        cell_at(3, 0)  # type: ignore[arg-type]
    assert place(caught.value).startswith("TypeError-source-")
