"""Bad input ends with one clear line and the right exit code, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rlproof.cli import main
from tests.bind.hostile import snapshot, survivors
from tests.support.sampling import only
from tests.support.trainers import expected, trainer

_LOSS = '''\
def grpo_loss(new_logps, old_logps, advantages, mask, clip_eps=0.2{more}):
    """Clipped surrogate over the real tokens: a loss to minimise."""
    {first}
    total, count = 0.0, 0
    for i, adv in enumerate(advantages):
        for t in range(len(mask[i])):
            if mask[i][t]:
                ratio = math.exp(new_logps[i][t] - old_logps[i][t])
                total -= min(ratio * adv, min(max(ratio, 1 - clip_eps), 1 + clip_eps) * adv)
                count += 1
    loss = total / max(count, 1)
    return {result}
'''
_WRITE = "open('ran.txt', 'w').close()"
_FAULTY = "def compute_advantages(rewards, group_size):\n    return [r / 1 for r in rewards]\n"


def loss(first: str = "pass", result: str = "loss", more: str = "", head: str = "") -> str:
    """A right loss, but for what is put into it."""
    text = _LOSS.format(first=first, result=result, more=more)
    return f"import math, os, sys, time, threading, subprocess\n{head}\n{text}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def check(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run `rlproof check` and hold it to what is true of every run."""
    mark = f"MARK_{uuid.uuid4().hex}"
    monkeypatch.setenv(mark, "1")

    def run(*arguments: str, may_write: tuple[str, ...] = ()) -> Result:
        before, start = snapshot(folder), time.monotonic()
        result = CliRunner().invoke(main, ["check", "--format", "concise", *arguments])
        after = snapshot(folder)
        for name in may_write:
            before.pop(name, None), after.pop(name, None)
        assert after == before
        assert time.monotonic() - start < 20
        assert "Traceback" not in result.output
        assert "internal" not in result.stderr
        assert all(line.startswith("error: ") for line in result.stderr.splitlines())
        assert isinstance(result.exception, SystemExit | None)
        assert not survivors(mark)
        return result

    return run


def test_the_sound_loss_is_clean(check: Callable[..., Result], folder: Path) -> None:
    """What the cases below put wrong is all that is wrong."""
    Path("t.py").write_text(loss())
    assert check("t.py").exit_code == 0


FILES: dict[str, tuple[bytes, int, str]] = {
    "syntax": (b"x = 1\ndef f(:\n", 2, "error: t.py:2: not valid Python: "),
    "binary": (b"\x7fELF\0\1\2", 2, "error: t.py: a binary file"),
    "cookie": (b"#!x\n# coding: klingon\n", 2, "error: t.py:2: unknown encoding: klingon"),
    "undecodable": (b"x = 1\n\ny = '\xe9'\n", 2, "error: t.py:3: not valid utf-8 text"),
    "empty": (b"", 5, "error: t.py: the file is empty"),
    "blank": (b"\xef\xbb\xbf\r\n", 5, "error: t.py: the file is empty"),
    "nothing": (b"print('hello')\n", 5, "error: t.py: no GRPO function recognised"),
    "class": (b"class grpo_loss:\n    pass\n", 5, "no GRPO function recognised"),
    "lambda": (b"grpo_loss = lambda new_logps, old_logps, advantages: 0\n", 5, "no GRPO function"),
    "null": (b"\0", 2, "error: t.py: a binary file"),
}


@pytest.mark.parametrize(("raw", "code", "message"), FILES.values(), ids=FILES)
def test_files(check: Callable[..., Result], raw: bytes, code: int, message: str) -> None:
    Path("t.py").write_bytes(raw)
    result = check("t.py")
    assert message in result.stderr
    assert (result.exit_code, result.stderr.count("\n")) == (code, 1)


def test_paths(check: Callable[..., Result], folder: Path) -> None:
    Path("docs").mkdir()
    Path("docs/notes.txt").write_text("x")
    os.mkfifo("pipe.py")
    Path("gone.py").symlink_to("nowhere.py")
    for path, code, message in [
        ("missing.py", 2, "missing.py: no such file"),
        ("docs", 5, "docs: the folder holds no Python file"),
        ("pipe.py", 2, "pipe.py: not a regular file"),
        ("gone.py", 2, "gone.py: no such file"),
        (os.devnull, 2, "/dev/null: not a regular file"),
        ("nul\0.py", 2, "nul\\x00.py: not a usable path"),
        ("two\nlines.py", 2, "two\\nlines.py: no such file"),
        ("\x1b[31m.py", 2, "\\x1b[31m.py: no such file"),
        ("stray\udcff.py", 2, "stray\\udcff.py: no such file"),
        ("", 2, ": no such file"),
    ]:
        result = check(path)
        assert message in result.stderr
        assert (result.exit_code, result.stderr.count("\n")) == (code, 1)


def test_one_bad_file_does_not_hide_the_others(check: Callable[..., Result]) -> None:
    Path("all").mkdir()
    Path("all/good.py").write_text(trainer(""))
    Path("all/bad.py").write_text("def (")
    result = check("all")
    assert "all/bad.py:1: not valid Python" in result.stderr
    assert "all/good.py" in result.stdout
    assert "SUR001" in result.stdout
    assert result.exit_code == 2  # not everything could be read


@pytest.mark.parametrize("name", ["a b.py", "línea ü.py", "'quoted\".py", "no_suffix", "-dash.py"])
def test_odd_names_are_fine(check: Callable[..., Result], name: str) -> None:
    Path(name).write_text(loss())
    assert check("--", name).exit_code == 0


def test_a_link_is_checked_as_its_target(check: Callable[..., Result]) -> None:
    Path("real.py").write_text(trainer(""))
    Path("link.py").symlink_to("real.py")
    result = check("link.py")
    assert result.exit_code == 1
    assert result.stdout == check("real.py").stdout.replace("real.py", "link.py")


def _found(result: Result) -> list[tuple[Any, ...]]:
    (file,) = json.loads(result.stdout)["files"]
    keys = ("code", "line", "end_line", "function", "message", "severity")
    return [tuple(finding[key] for key in keys) for finding in file["findings"]]


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: b"\xef\xbb\xbf" + raw,
        lambda raw: raw.replace(b"\n", b"\r\n"),
        lambda raw: b"\xef\xbb\xbf" + raw.replace(b"\n", b"\r\n"),
        lambda raw: b"# coding: latin-1 \xe9\n" + raw.removeprefix(b"# a comment\n"),
    ],
    ids=["mark", "crlf", "mark_crlf", "latin_1"],
)
def test_how_it_was_saved_changes_no_finding(
    check: Callable[..., Result], change: Callable[[bytes], bytes]
) -> None:
    raw = b"# a comment\n" + trainer("").encode()
    Path("plain.py").write_bytes(raw)
    Path("saved.py").write_bytes(change(raw))
    plain, saved = (check(name, "--format", "json") for name in ("plain.py", "saved.py"))
    assert _found(saved) == _found(plain)
    strong = sorted(code for code, *_, severity in _found(saved) if severity != "note")
    assert strong == expected("")
    assert saved.exit_code == 1


# What the loss does, the exit code, and what is said of it.
LOSSES: dict[str, tuple[str, int, str]] = {
    "raises": (loss("raise ValueError('no way')"), 5, "raised ValueError at line 5: no way"),
    "raises_lines": (loss("raise ValueError('a\\nb')"), 5, "raised ValueError at line 5: a"),
    "hangs": (loss("while True: pass"), 5, "did not finish within 1 s"),
    "recurses": (loss("return grpo_loss(new_logps, old_logps, advantages, mask, clip_eps)"), 5,
                 "raised RecursionError at line 5"),
    "exits": (loss("sys.exit(3)"), 5, "called sys.exit(3)"),
    "exits_hard": (loss("os._exit(0)"), 5, "ended the process (exit status 0)"),
    "forks": (loss("os.fork()"), 5, "tried to start a process, which the sandbox refuses"),
    "writes": (loss(_WRITE), 5, "tried to write 'ran.txt', which the sandbox refuses"),
    "prints": (loss("print('x' * 10**6)"), 0, "No faults found"),
    "threads": (loss("t = threading.Thread(target=id, args=(1,)); t.start(); t.join()"), 0, "No f"),
    "tuple": (loss(result="(loss, {'count': count})"), 0, "No faults found"),
    "dict": (loss(result="{'count': count, 'loss': loss}"), 0, "No faults found"),
    "list": (loss(result="[loss]"), 0, "No faults found"),
    "nan": (loss(result="float('nan')"), 5, "returned nan"),
    "string": (loss(result="str(loss)"), 5, "returned str"),
    "none": (loss(result="None"), 5, "returned None, where a loss was expected"),
    "object": (loss(result="object()"), 5, "returned a object, where a loss was expected"),
    "huge": (loss(result="10**400"), 5, "too large for a float"),
    "generator": (loss("yield"), 5, "returned a generator, where a loss was expected"),
    "async": (loss().replace("def grpo", "async def grpo"), 5, "returned a coroutine, where a"),
    "mutates": (loss(result="advantages.reverse() or loss"), 1, "LOP011"),
    "unknown_argument": (loss(more=", *, zebra", result="loss * zebra"), 5,
                         "needs `zebra` (line 14), whose meaning is not"),
    "unread_argument": (loss(more=", *, zebra"), 0, "No faults found: 1 function recognised"),
    "default_runs": (loss(more=", file=open('ran.txt', 'w')"), 5, "by running code, which is"),
    "not_installed": (loss(head="import no_such_package", first="no_such_package.x()"), 5,
                      "needs no_such_package, which is not installed"),
    "redefined": (loss("raise ValueError") + loss(), 0, "No faults found"),
    "deleted": (loss() + "del grpo_loss\n", 0, "No faults found"),  # a dropped statement
    "identifiers": (loss(head="ﬁ = 1\nπ = 3.14\nx_é = '\\udcff'", first="ﬁ; fi; π; x_é"), 0, ""),
    "long": (loss(head="x = 1\n" * 10_000), 0, "No faults found"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "code", "message"), LOSSES.values(), ids=LOSSES)
def test_losses(check: Callable[..., Result], text: str, code: int, message: str) -> None:
    Path("t.py").write_text(text, "utf-8")
    result = check("t.py", "--timeout", "1")
    assert message in result.stdout
    assert result.exit_code == code
    assert (result.exit_code == 5) == ("skipped t.py: running grpo_loss: " in result.stdout)
    assert result.stderr == ""


def test_lines_after_a_long_head_are_right(check: Callable[..., Result]) -> None:
    Path("short.py").write_text(trainer(""))
    Path("long.py").write_text("x = 1\n" * 2_000 + trainer(""))
    short, long = (_found(check(name, "--format", "json")) for name in ("short.py", "long.py"))
    assert [(row[0], row[1] - 2_000) for row in long] == [row[:2] for row in short]


def test_without_a_package_the_source_is_still_judged(check: Callable[..., Result]) -> None:
    """The mask is a parameter that nothing reads; that needs no run."""
    text = "import no_such_package as n\n\ndef grpo_loss(new_logps, old_logps, advantages, mask):\n"
    text += "    return -n.mean(n.exp(new_logps - old_logps) * advantages)\n"
    Path("t.py").write_text(text)
    result = check("t.py")
    assert "t.py:4:5: MSK001" in result.stdout
    assert "needs no_such_package, which is not installed" in result.stdout
    assert result.exit_code == 1


@pytest.mark.parametrize("ending", [_WRITE, "import no_such_package", "os._exit(1)"])
def test_a_loop_that_the_sandbox_stops_is_no_crash_of_the_script(
    check: Callable[..., Result], ending: str
) -> None:
    """Saving a checkpoint or logging elsewhere is right; a finding would be a false alarm."""
    text = trainer("GERMSKOC").replace("    return theta", f"    {ending}\n    return theta")
    assert ending in text
    Path("t.py").write_text(f"import os\n{text}")
    result = check("t.py")
    assert "LOP010 crash-on-valid-input [error]" not in result.stdout
    assert result.exit_code == 0


TOP_LEVEL = f"""{loss()}
import beside
class Config(dict):
    path = {_WRITE}
if __name__ == "__main__" or True:
    {_WRITE}
for _ in range(1):
    {_WRITE}
with open("ran.txt", "w"):
    pass
{_WRITE}
"""


def test_top_level_statements_never_run(check: Callable[..., Result], folder: Path) -> None:
    Path("t.py").write_text(TOP_LEVEL)
    Path("beside.py").write_text(_WRITE)
    assert check("t.py").exit_code == 0
    assert check("t.py", "--no-run").exit_code == 5  # nothing was judged
    # the test can fail: as a script it does write
    subprocess.run([sys.executable, "-B", "t.py"], check=True, timeout=60)
    assert (folder / "ran.txt").exists()


def test_output_replaces_a_file_whole(check: Callable[..., Result], folder: Path) -> None:
    Path("t.py").write_text(trainer(""))
    Path("report.txt").write_text("old " * 100_000)
    result = check("t.py", "-o", "report.txt", may_write=("report.txt",))
    assert (result.exit_code, result.stdout) == (1, "")  # findings count, wherever they go
    assert Path("report.txt").read_text("utf-8") == check("t.py").stdout


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("missing/report.txt", "-o missing/report.txt: can't be written (No such file"),
        ("t.py/report.txt", "-o t.py/report.txt: can't be written (Not a directory)"),
        ("x" * 300, "can't be written (File name too long)"),
    ],
)
def test_output_that_cannot_be_written(
    check: Callable[..., Result], output: str, message: str
) -> None:
    Path("t.py").write_text(trainer(""))
    result = check("t.py", "-o", output)
    assert message in result.stderr
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)


def test_output_to_what_is_no_file_does_not_replace_it(folder: Path) -> None:
    """`-o /dev/null` run as root must leave the device where it is."""
    Path("t.py").write_text(loss())
    os.mkfifo("pipe")
    reader = subprocess.Popen(["cat", "pipe"], stdout=subprocess.PIPE)
    Path("real.txt").write_text("old")
    Path("link.txt").symlink_to("real.txt")
    for output in ("pipe", "link.txt"):
        assert CliRunner().invoke(main, ["check", "t.py", "-o", output]).exit_code == 0
    assert b"No faults found" in reader.communicate(timeout=20)[0]
    assert Path("pipe").is_fifo()
    assert Path("link.txt").is_symlink()
    assert "No faults found" in Path("real.txt").read_text("utf-8")


@pytest.mark.parametrize("seconds", ["inf", "1e300", "nan"])
def test_endless_time_is_a_long_time(check: Callable[..., Result], seconds: str) -> None:
    Path("t.py").write_text(loss())
    assert check("t.py", "--timeout", seconds).exit_code == 0


def test_advantages_that_stop_being_numbers(check: Callable[..., Result]) -> None:
    text = "n = [0]\ndef compute_advantages(rewards, group_size):\n    n[0] += 1\n"
    text += "    return [0.0 if n[0] < 3 else None for r in rewards]\n"
    Path("t.py").write_text(text)
    assert check("t.py").exit_code in (1, 5)


def test_output_is_not_touched_when_nothing_could_be_checked(check: Callable[..., Result]) -> None:
    Path("report.txt").write_text("old")
    Path("docs").mkdir()
    assert check("docs", "-o", "report.txt").exit_code == 5


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        (b"a b.py", trainer(""), 1),
        (b"stray\xff.py", trainer(""), 1),
        (b"two\nlines.py", loss(), 0),
        (b"t.py", loss("raise ValueError('\\udcff\\x1b[31m')"), 5),
        (b"t.py", loss("os.write(1, b'junk'); os.write(2, b'junk')"), 0),
        (b"t.py", loss("while True: print('x' * 10**6)"), 5),
        (b"t.py", "def (", 2),
    ],
)
@pytest.mark.parametrize("encoding", only(["ascii"], ["utf-8", "ascii"]))
def test_the_real_command(name: bytes, text: str, code: int, encoding: str, folder: Path) -> None:
    """In a process of its own, on terminals that know Greek and on those that don't."""
    Path(os.fsdecode(name)).write_text(text)
    before = snapshot(folder)
    command = [sys.executable, "-m", "rlproof.cli", "check", "--timeout", "1", name]
    code_of = "import sys; from rlproof.cli import main; main()"
    command[1:3] = ["-c", code_of]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run(command, capture_output=True, timeout=60, env=environment, check=False)
    assert done.returncode == code
    assert b"Traceback" not in done.stderr + done.stdout
    assert b"junk" not in done.stderr + done.stdout
    assert b"\x1b" not in done.stderr + done.stdout
    assert done.stderr.count(b"\n") == (1 if code == 2 else 0)
    assert snapshot(folder) == before
