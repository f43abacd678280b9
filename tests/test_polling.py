"""`check --watch`: when a check is made again, and how it ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from rlproof import polling
from rlproof.cli import main
from rlproof.faults.page import page

PLANTED, HEALTHY = page("SUR004").planted, page("SUR004").healthy


def touched(path, text):
    """Replace at once, with a time that no clock is too coarse for."""
    draft = Path(path).resolve().parent.parent / "draft"
    draft.write_text(text, "utf-8")
    now = time.time_ns() + len(text) * 1_000_000
    os.utime(draft, ns=(now, now))
    draft.replace(path)


def watched(monkeypatch, changes, codes, further=()):
    """The exit code and the number of checks: at each look one change, then the user's Ctrl-C."""
    left, runs = iter(changes), []

    def sleep(_seconds):
        change = next(left, None)
        if change is None:
            raise KeyboardInterrupt
        change()

    def run():
        runs.append(1)
        return codes[len(runs) - 1], list(further)

    monkeypatch.setattr(polling.time, "sleep", sleep)
    return polling.repeat(["src"], run, lambda line: None), len(runs)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("src").mkdir()
    Path("other").mkdir()
    for name in ("src/one.py", "other/helper.py", "other/beside.py"):
        Path(name).write_text("x = 1\n", "utf-8")
    return tmp_path


def test_the_last_code_counts_and_nothing_changed_is_no_check(folder, monkeypatch):
    assert watched(monkeypatch, [lambda: None] * 3, [1]) == (1, 1)


@pytest.mark.parametrize(
    "change",
    [
        lambda: touched("src/one.py", "x = 2\n"),
        lambda: touched("src/new.py", "x = 2\n"),
        lambda: touched("src/new.ipynb", "{}"),
        lambda: Path("src/one.py").unlink(),
        lambda: touched("other/helper.py", "y = 2\n"),
        lambda: touched("pyproject.toml", "[tool.rlproof]\n"),
    ],
)
def test_a_change_is_a_check(folder, monkeypatch, change):
    done = watched(monkeypatch, [lambda: None, change], [1, 0], ["other/helper.py"])
    assert done == (0, 2)


def test_other_files_are_no_change(folder, monkeypatch):
    change = lambda: touched("src/log.txt", "…")  # noqa: E731
    assert watched(monkeypatch, [change], [1, 0]) == (1, 1)


def test_a_change_while_a_check_runs_is_seen(folder, monkeypatch):
    runs = []

    def run():
        runs.append(1)
        if len(runs) == 1:
            touched("src/one.py", "x = 3\n")
        return len(runs) - 1, []

    def interrupted(_seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(polling.time, "sleep", interrupted)
    assert polling.repeat(["src"], run, lambda line: None) == 1
    assert len(runs) == 2


def test_options_that_do_not_go_together(folder):
    for options in (["--fix"], ["-o", "x"], ["--write-baseline", "x"]):
        result = CliRunner().invoke(main, ["check", "src", "--watch", *options])
        assert result.exit_code == 2
        assert "--watch" in result.stderr


def test_the_command_checks_again_and_ends_with_the_last_code(folder):
    """A fault, an error while the file is being typed, then the repair: codes 1, 2, 0.

    Jobs in the background of a script ignore Ctrl-C, and what they start inherits that.
    """
    script = Path("src/one.py")
    script.write_text(PLANTED, "utf-8")
    command = [sys.executable, "-m", "rlproof", "check", "--watch", "--format", "concise", "src"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
                          env={**os.environ, "PYTHONUNBUFFERED": "1"}) as process:  # fmt: skip
        assert process.stderr is not None
        assert process.stdout is not None

        def until_watching():
            lines = []
            for line in process.stderr:
                lines.append(line)
                if line.startswith("watching"):
                    return "".join(lines)
            raise AssertionError("".join(lines))

        until_watching()
        touched(script, "def f(:\n")
        assert "not valid Python" in until_watching()
        touched(script, HEALTHY)
        until_watching()
        process.send_signal(signal.SIGINT)
        text, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "SUR004" in text
    assert "Traceback" not in errors
    assert text.splitlines()[-1].startswith(("No faults found", "Found"))
