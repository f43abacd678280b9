"""Children forked from a warm process do what started ones do, and end as they end."""

import signal
import subprocess
import time
from pathlib import Path

import pytest

from rlproof.bind.children import Warm, cold, shared_for, warm_for
from rlproof.bind.sandbox import ChildDiedError, Sandbox
from rlproof.read.source import load

SCRIPT = """
import os, sys

def double(x):
    return 2 * x

def leave():
    os._exit(3)

def folder():
    return os.getcwd()

def crash():
    os.abort()

def hang():
    while True:
        pass

def counter(seen=[]):
    seen.append(1)
    return float(len(seen))
"""

pytestmark = pytest.mark.usefixtures("cold_children")


def source(tmp_path, text=SCRIPT):
    path = tmp_path / "script.py"
    path.write_text(text)
    return load(str(path))


def ask(sandbox, name, **arguments):
    given = {key: ["raw", value] for key, value in arguments.items()}
    return sandbox.call([{"function": name, "arguments": given, "want": "plain"}])[0]


@pytest.fixture
def warm():
    with Warm(()) as made:
        yield made


def test_same_answer(tmp_path, warm):
    with Sandbox(source(tmp_path), begin=warm.start) as sandbox:
        assert ask(sandbox, "double", x=4.0)["value"] == 8.0


def test_children_share_nothing(tmp_path, warm):
    for _ in range(3):
        with Sandbox(source(tmp_path), begin=warm.start) as sandbox:
            assert ask(sandbox, "counter")["value"] == 1.0


def test_each_starts_where_its_parent_is_then(tmp_path, warm, monkeypatch):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        for begin in (warm.start, cold):
            with Sandbox(source(tmp_path), begin=begin) as sandbox:
                assert ask(sandbox, "folder")["value"] == str(Path.cwd())


@pytest.mark.parametrize(
    ("name", "said"), [("leave", r"exit status 3\)"), ("crash", r"crashed .*SIGABRT")]
)
def test_the_end_is_told_as_for_a_cold_child(tmp_path, warm, name, said):
    for begin in (warm.start, cold):
        sandbox = Sandbox(source(tmp_path), begin=begin)
        with sandbox, pytest.raises(ChildDiedError, match=said):
            ask(sandbox, name)


def test_a_child_that_hangs_is_ended(tmp_path, warm):
    with Sandbox(source(tmp_path), seconds=0.3, begin=warm.start) as sandbox:
        with pytest.raises(ChildDiedError, match=r"within 0\.3 s"):
            ask(sandbox, "hang")
        assert ask(sandbox, "double", x=1.0)["value"] == 2.0


def test_without_its_process_children_start_cold(tmp_path, warm):
    first = warm.start()
    warm._process.send_signal(signal.SIGKILL)
    warm._process.wait()
    assert first.wait(10) == -signal.SIGKILL  # it ends with the process that it came from
    with Sandbox(source(tmp_path), begin=warm.start) as sandbox:
        assert ask(sandbox, "double", x=2.0)["value"] == 4.0
    for pipe in (first.stdin, first.stdout):
        pipe.close()


def test_waiting_has_a_limit(warm):
    child = warm.start()
    started = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0.05)
    assert time.monotonic() - started < 5
    child.stdin.close()
    assert child.wait(10) == 0
    child.stdout.close()


@pytest.mark.parametrize(
    ("text", "warms"),
    [
        ("import torch\n", True),
        ("from torch.nn import functional as F\n", True),
        ("import numpy as np\n", False),
        ("from .torch import x\n", False),
    ],
)
def test_only_slow_libraries_are_worth_it(tmp_path, text, warms):
    assert (warm_for(source(tmp_path, text)) is not None) == warms


def test_a_file_of_that_name_comes_first(tmp_path):
    (tmp_path / "torch.py").write_text("")
    assert warm_for(source(tmp_path, "import torch\n")) is None


def test_scripts_share_a_warm_process_while_the_environment_is_the_same(tmp_path, monkeypatch):
    one, other = tmp_path / "one.py", tmp_path / "other.py"
    for path in (one, other):
        path.write_text("import torch\n", encoding="utf-8")
    first = shared_for(load(str(one)))
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "another")
    assert first is not None
    assert shared_for(load(str(other))) is first
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert shared_for(load(str(other))) is not first
    one.write_text("import math\n", encoding="utf-8")
    assert shared_for(load(str(one))) is None
