"""`rlproof train` without a run file: what it prints and writes, and what it leaves alone."""

import json
import os
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

from rlproof import tiny
from rlproof.cli import main

pty = pytest.importorskip("pty", reason="terminals of POSIX")


def ran(*arguments, code=0):
    result = CliRunner().invoke(main, ["train", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.output


def on_terminal(*arguments, **env):
    """The output on a terminal of 50 columns, with its escapes."""
    first, second = pty.openpty()
    full = {**os.environ, "TERM": "xterm", "COLUMNS": "50", "PYTHONUTF8": "1", **env}
    child = subprocess.Popen(
        [sys.executable, "-m", "rlproof", "train", *arguments], stdout=second, env=full
    )
    os.close(second)
    parts = []
    while True:
        try:
            part = os.read(first, 65536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(first)
    assert child.wait() == 0
    return b"".join(parts).decode()


def test_piped_output_is_lines_and_the_same_each_time():
    text = ran()
    assert text == ran()
    assert "\x1b" not in text
    numbers = [int(n) for n in re.findall(r"^step +(\d+)/60", text, re.MULTILINE)]
    assert numbers == [1, 10, 20, 30, 40, 50, 60]
    _, history = tiny.train()
    assert f"step 60/60  reward {history[-1]['reward']:.3f}" in text
    # test_tiny.py has the exact reward of seed 0 between .9833 and .9848.
    assert re.search(r"exactly: 0\.98[34]", text)
    assert "⣀" in text


def test_options_reach_the_trainer():
    text = ran("--steps", 5, "--lr", 1, "--seed", 3, "--group-size", 4, "--epochs", 1)
    history = tiny.train(steps=5, lr=1.0, seed=3, group_size=4, epochs=1)[1]
    assert f"step 5/5  reward {history[-1]['reward']:.3f}" in text
    assert "4 prompts × 4 completions and 1 update a step, lr 1, seed 3" in text
    history = tiny.train(steps=2, lr=9.0, clip_eps=0.05, beta=0.5)[1]
    text = ran("--steps", 2, "--lr", 9, "--clip-eps", 0.05, "--beta", 0.5)
    assert f"clip {history[-1]['clip_frac']:.1%}" in text


def test_a_recipe_that_clips_nothing_shows_no_clip_fraction():
    assert "clip" not in ran("--objective", "rloo", "--steps", 3)
    assert "clip fraction" in ran("--objective", "dapo", "--steps", 3)


def test_what_is_written_is_judged_clean(tmp_path):
    log, record, plot = (tmp_path / name for name in ("log.jsonl", "steps.jsonl", "plot.svg"))
    text = ran("--log", log, "--record", record, "--plot", plot)
    assert len(log.read_text().splitlines()) == 60
    assert json.loads(log.read_text().splitlines()[0])["reward"] == tiny.train()[1][0]["reward"]
    assert plot.read_text().startswith("<svg")
    assert str(plot) in text
    for path in (log, record):
        judged = CliRunner().invoke(main, ["inspect", str(path)])
        assert judged.exit_code == 0, judged.output
        assert "Nothing wrong" in judged.output
    assert "token-mean" in judged.output  # what the recorded losses were found to be


def test_files_of_an_earlier_run_are_replaced(tmp_path):
    names = ("log.jsonl", "steps.jsonl", "plot.svg")
    arguments = [x for n in names for x in (f"--{n.split('.')[0]}", tmp_path / n)]
    arguments = [str(a).replace("--steps", "--record") for a in arguments]
    ran("--steps", 30, *arguments)
    before = [(tmp_path / name).read_bytes() for name in names]
    ran("--steps", 30, *arguments)
    assert [(tmp_path / name).read_bytes() for name in names] == before


@pytest.mark.parametrize("option", ["--log", "--record", "--plot"])
def test_a_file_of_another_kind_is_kept(tmp_path, option):
    path = tmp_path / "train.py"
    path.write_text("print('mine')\n")
    assert "holds something else" in ran(option, path, code=2)
    assert path.read_text() == "print('mine')\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--steps", "0"), "error: --steps is 0, expected 1 or more"),
        (("--log", "no/such/folder"), "--log no/such/folder: there is no folder"),
        (("--plot", "."), "is a folder"),
        (("--log", "a", "--record", "a"), "--record a: the file of --log; name another one"),
        (("--resume",), "--resume needs RUN.toml"),
        (("--set", "run.steps=3"), "--set needs RUN.toml"),
        (("--check-first-step",), "--check-first-step needs RUN.toml"),
        (("run.toml", "--group-size", "3"), "--group-size is for training without RUN.toml"),
        (("--objective", "gpro"), "did you mean"),
    ],
)
def test_refusals(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in ran(*arguments, code=2)
    assert list(tmp_path.iterdir()) == []


def test_what_was_done_is_shown_when_a_run_can_not_go_on(tmp_path):
    text = ran("--lr", "1e308", "--log", tmp_path / "log", code=2)
    assert "step 1: the logits left the range of floats" in text


def test_an_interrupted_run_shows_its_curves(monkeypatch, tmp_path):
    from rlproof.train import tabular

    whole = tabular.Run.steps

    def some(self):
        for values in whole(self):
            if values["step"] == 12:
                raise KeyboardInterrupt
            yield values

    monkeypatch.setattr(tabular.Run, "steps", some)
    text = ran("--plot", tmp_path / "p.svg", code=2)
    assert "reward (mean of 32 completions)" in text
    assert "error: interrupted after 12 of 60 steps" in text
    assert "12 steps" in (tmp_path / "p.svg").read_text()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
def test_a_full_disk_is_said():
    assert "--log /dev/full: can't be written (No space left" in ran("--log", "/dev/full", code=2)
    assert "--plot /dev/full: can't be written" in ran("--plot", "/dev/full", code=2)


def test_ascii_where_the_encoding_has_no_more():
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "rlproof", "train", "--steps", "12"]
    text = subprocess.run(command, env=env, capture_output=True, check=True).stdout.decode("ascii")
    assert "?" not in text
    assert re.search(r"1\.00 \+", text)


def test_a_terminal_has_a_bar_that_goes_away():
    text = on_terminal("--steps", "300")
    assert "300/300" in text
    assert "\x1b[2K" in text  # the bar is erased
    last = text[text.rindex("\x1b[2K") + 4 :]
    assert "reward (mean of 32 completions)" in last
    assert max(map(len, last.splitlines())) <= 50
    bars = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in re.split(r"[\r\n]+", text)]
    bars = [line for line in bars if re.search(r"\d/300", line)]
    assert bars
    assert all(len(line) <= 50 and " reward " in line for line in bars if " 0/300" not in line)
    assert not re.search(r"^step +\d", text, re.MULTILINE)


def test_no_colour_and_dumb_terminals():
    coloured = re.compile(r"\x1b\[[0-9;]*m")
    assert coloured.search(on_terminal("--steps", "100"))
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", on_terminal("--steps", "100", NO_COLOR="1"))
    dumb = on_terminal("--steps", "20", TERM="dumb")
    assert "\x1b" not in dumb
    assert "step 20/20" in dumb
