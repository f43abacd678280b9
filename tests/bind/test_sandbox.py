"""Whatever a function of the script does, the answer is one line and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from tests.bind.hostile import (
    ENDINGS,
    FLOOD,
    HANGS,
    HARMLESS,
    NATIVE_TRACES,
    SPOIL,
    TRACES,
    Try,
    ask,
    prepare,
    script,
    snapshot,
    survivors,
    written,
)
from tests.support.sampling import one_in

from rlproof.bind.sandbox import ChildDiedError, Sandbox

pytestmark = pytest.mark.usefixtures("cold_children")

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc or Landlock")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    return tmp_path


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> str:
    """Every process started from here on carries this in its environment."""
    name = f"MARK_{uuid.uuid4().hex}"
    monkeypatch.setenv(name, "1")
    return name


def _has_landlock() -> bool:
    code = "from rlproof.bind.child.landlock import forbid_writes as f; raise SystemExit(not f())"
    return subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("case", one_in(4, TRACES), ids=str)
def test_no_trace_is_left(case: Try, folder: Path) -> None:
    pytest.importorskip("numpy") if case.name == "numpy" else None
    source = written(folder, script(case.body))
    before = snapshot(folder)
    assert case.reason in ask(source)
    assert snapshot(folder) == before


@linux
@pytest.mark.parametrize("case", NATIVE_TRACES, ids=str)
def test_the_kernel_refuses_what_python_does_not_see(case: Try, folder: Path) -> None:
    if not _has_landlock():
        pytest.skip("this kernel has no Landlock")
    source = written(folder, script(case.body))
    before = snapshot(folder)
    assert case.reason in ask(source)
    assert snapshot(folder) == before


@pytest.mark.parametrize("case", one_in(10, [*TRACES, *NATIVE_TRACES]), ids=str)
def test_each_leaves_a_trace_outside_the_sandbox(case: Try, folder: Path) -> None:
    """The guards above can fail: the same code changes the folder when nothing stops it."""
    source = written(folder, script(case.body) + "\nf()\n")
    before = snapshot(folder)
    run = [sys.executable, "-W", "ignore", source.path]
    subprocess.run(run, check=True, capture_output=True, timeout=60)
    assert snapshot(folder) != before


@pytest.mark.parametrize("case", one_in(4, ENDINGS), ids=str)
def test_a_reason_instead_of_an_answer(case: Try, folder: Path, mark: str) -> None:
    source = written(folder, script(case.body))
    before = snapshot(folder)
    reason = ask(source)
    assert case.reason in reason
    assert "\n" not in reason
    assert reason.isprintable()
    assert len(reason) < 300
    assert reason != "1.5"
    assert snapshot(folder) == before
    assert not survivors(mark)


@pytest.mark.parametrize("case", one_in(3, HANGS), ids=str)
def test_hangs_end_at_the_limit(case: Try, folder: Path, mark: str) -> None:
    source = written(folder, script(case.body))
    start = time.monotonic()
    reason = ask(source, seconds=0.5)
    # endless recursion may end by a crash or an exhausted memory before the time is up
    assert "did not finish within 0.5 s" in reason or case.name == "deep"
    assert reason != "1.5"
    assert time.monotonic() - start < 10
    assert not survivors(mark)


def test_a_flood_into_the_answer_ends_at_the_limit(folder: Path, mark: str) -> None:
    """A line without an end, always readable: neither the time nor the memory may run away."""
    start = time.monotonic()
    assert ask(written(folder, script(FLOOD)), seconds=1.0)
    assert time.monotonic() - start < 10
    assert not survivors(mark)


@pytest.mark.parametrize("case", HARMLESS, ids=str)
def test_the_answer_comes_through(case: Try, folder: Path, mark: str) -> None:
    source = written(folder, script(case.body))
    before = snapshot(folder)
    assert ask(source) == "1.5"
    assert Path.cwd() == folder
    assert snapshot(folder) == before
    assert not survivors(mark)


def test_a_thread_that_outlives_its_call_is_still_refused(folder: Path) -> None:
    body = "threading.Thread(target=lambda: (time.sleep(0.1), open('late', 'w'))).start()"
    source = written(folder, script(body))
    before = snapshot(folder)
    with Sandbox(source) as sandbox:
        sandbox.call([{"function": "f", "arguments": {}, "want": "plain"}])
        time.sleep(0.4)
    assert snapshot(folder) == before


def test_exit_handlers_write_nothing(folder: Path) -> None:
    body = "import atexit; atexit.register(open, 'late', 'w'); os.closerange(3, 50)"
    source = written(folder, script(body))
    before = snapshot(folder)
    assert "ended the process" in ask(source)
    assert snapshot(folder) == before


def test_torch_save_keeps_an_existing_checkpoint(folder: Path) -> None:
    """It opens the file in C++, where no audit hook sees it, and empties it first."""
    pytest.importorskip("torch")
    source = written(folder, script("torch.save([1], 'kept.txt')", "import torch\n"))
    before = snapshot(folder)
    assert "tried to write a file" in ask(source)
    assert snapshot(folder) == before


def test_saving_to_memory_is_allowed(folder: Path) -> None:
    pytest.importorskip("torch")
    body = "b = io.BytesIO(); torch.save([1], b); assert b.tell()"
    assert ask(written(folder, script(body, "import io\nimport torch\n"))) == "1.5"


def test_after_a_death_the_next_call_gets_a_fresh_child(folder: Path) -> None:
    text = "import os\nstate = []\ndef f():\n os._exit(1)\ndef g():\n return 2.5\n"
    good = {"function": "g", "arguments": {}, "want": "plain"}
    with Sandbox(written(folder, text)) as sandbox:
        with pytest.raises(ChildDiedError):
            sandbox.call([{**good, "function": "f"}])
        assert sandbox.call([good])[0]["value"] == 2.5


@pytest.mark.parametrize("operation", ["state", "record"])
def test_other_requests_survive_a_spoilt_answer(operation: str, folder: Path) -> None:
    state = {"function": "f", "arguments": {}}
    record = {"function": "f", "kwargs": {}, "wrap": [], "limit": 9}
    with Sandbox(written(folder, script(SPOIL))) as sandbox:
        request = {"state": state, "record": record}[operation]
        with pytest.raises(ChildDiedError, match="not its own"):
            getattr(sandbox, operation)(request)


def test_a_state_that_is_not_numbers_is_none(folder: Path) -> None:
    text = "def f(theta):\n theta[0] = object()\n"
    with Sandbox(written(folder, text)) as sandbox:
        answer = sandbox.state({"function": "f", "arguments": {"theta": ["list", [1.0]]}})
    assert answer["after"] == {"theta": None}


@pytest.mark.parametrize(
    ("body", "ended"),
    [
        ("open('log', 'w')", "refused"),  # the sandbox forbids it; the script may
        ("import no_such_package", "refused"),  # not installed here
        ("dropped()", "refused"),  # made by a statement that is never run
        ("raise ValueError", "raised"),  # the script's own
        ("pass", "returned"),
    ],
)
def test_only_the_scripts_own_errors_end_a_recording_as_raised(
    body: str, ended: str, folder: Path
) -> None:
    source = written(folder, script(body, "dropped = print('x')\n"))
    with Sandbox(source) as sandbox:
        answer = sandbox.record({"function": "f", "kwargs": {}, "wrap": ["dropped"], "limit": 9})
    assert answer["ended"] == ended
    assert ("error" in answer) == (ended == "raised")


@linux
def test_no_child_outlives_a_parent_that_is_killed(folder: Path, mark: str) -> None:
    source = written(folder, script("time.sleep(99)"))
    code = f"from tests.bind.hostile import ask, load; ask(load({source.path!r}), 99)"
    root = str(Path(__file__).parents[2])
    parent = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": root})
    try:
        deadline = time.monotonic() + 20
        while len(survivors(mark, patience=0)) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(survivors(mark, patience=0)) == 2  # the search can find them
        time.sleep(0.5)  # well into the sleep
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    assert not survivors(mark)
