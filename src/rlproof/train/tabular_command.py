"""`rlproof train` without a run file: the tabular trainer, shown while it runs."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from rlproof.errors import ConfigError
from rlproof.read.source import shown
from rlproof.report.write import write_atomically
from rlproof.train.plot import BRAILLE, Charset, Curve, charset_for, terminal
from rlproof.train.svg import svg
from rlproof.train.tabular import Run, Settings
from rlproof.watch.record import Recorder

EVERY = 10
"""Steps from one record to the next: a run of the default length decides what its loss is."""
Emit = Callable[[str], None]
History = list[dict[str, float]]
_SHOWN = (
    ("reward", "reward {:.3f}"), ("kl", "kl {:.3f}"), ("entropy", "entropy {:.3f}"),
    ("clip_frac", "clip {:.1%}"), ("grad_norm", "grad {:.2g}"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Files:
    """Where a run is written to; None writes nothing."""

    log: str | None = None
    record: str | None = None
    plot: str | None = None


@dataclass(frozen=True, slots=True)
class Screen:
    """What the output can show."""

    width: int = 80
    chars: Charset = BRAILLE
    live: bool = False
    """Whether lines can be drawn over: a terminal, and not a dumb one."""

    @classmethod
    def of(cls, out: TextIO) -> Screen:
        """As standard output is; COLUMNS overrules its width."""
        width = max(24, min(120, shutil.get_terminal_size((80, 24)).columns))
        live = out.isatty() and os.environ.get("TERM") != "dumb"
        return cls(width, charset_for(out.encoding), live)


def train_table(settings: Settings, files: Files, emit: Emit, screen: Screen | None = None) -> int:
    """Train the table, show it, and write what was asked for; the exit code.

    Args:
        settings: the run.
        files: where to write.
        emit: prints.
        screen: None looks at standard output.

    Raises:
        ConfigError: a file can't be written or is something else, or the run can't go on; what
            was done until then is shown and plotted first.
    """
    screen = screen or Screen.of(sys.stdout)
    run, history = Run(settings), list[dict[str, float]]()
    _check(files)
    recorder = run.recorder = Recorder(files.record, every=EVERY) if files.record else None
    emit(_opening(settings, screen.width))
    began = time.perf_counter()
    try:
        _follow(run, history, files.log, emit, screen)
    except KeyboardInterrupt:
        raise ConfigError(f"interrupted after {len(history)} of {settings.steps} steps") from None
    finally:
        if recorder is not None:
            recorder.close()
        if history:
            seconds = time.perf_counter() - began if screen.live else None
            emit(_closing(run, history, seconds, screen))
            _plot(files, settings, history)
    emit(_hints(files))
    return 0


def _follow(run: Run, history: History, log: str | None, emit: Emit, screen: Screen) -> None:
    steps = run.settings.steps
    shown_by = _bar(steps, screen) if screen.live else _lines(steps, emit)
    with _log(log) as write, shown_by as show:
        for values in run.steps():
            history.append(values)
            write(values)
            show(values)


@contextmanager
def _lines(steps: int, emit: Emit) -> Iterator[Callable[[dict[str, float]], None]]:
    """Every tenth step in a line, or every tenth part of a long run; always the last."""
    every, width = max(10, steps // 10), len(str(steps))

    def show(values: dict[str, float]) -> None:
        number = int(values["step"]) + 1
        if number % every == 0 or number in (1, steps):
            emit(f"step {number:>{width}}/{steps}  {_said(values)}\n")

    yield show


@contextmanager
def _bar(steps: int, screen: Screen) -> Iterator[Callable[[dict[str, float]], None]]:
    """A bar that is gone when the run is over."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    long = min(30, screen.width // 4)
    room = screen.width - long - 2 * len(str(steps)) - 3  # the bar, the count, what is between
    columns = (BarColumn(long), MofNCompleteColumn(), TextColumn("{task.fields[said]}"))
    console = Console(file=sys.stdout, width=screen.width)
    with Progress(*columns, console=console, transient=True, refresh_per_second=10) as progress:
        task = progress.add_task("", total=steps, said="")
        yield lambda values: progress.update(task, advance=1, said=_said(values, room))


def _said(values: dict[str, float], room: int | None = None) -> str:
    """The metrics in a line: the first of them that there is room for."""
    said = ""
    for name, form in _SHOWN:
        if name in values:
            longer = f"{said}  {form.format(values[name])}".strip()
            if room is not None and len(longer) > room:
                break
            said = longer
    return said


@contextmanager
def _log(path: str | None) -> Iterator[Callable[[dict[str, float]], None]]:
    """One JSON object a line, written through at once so that it can be followed."""
    if path is None:
        yield lambda _values: None
        return
    with _said_of(path):
        open(path, "wb").close()  # empty, before the run
    with open(path, "ab", buffering=0) as file:

        def write(values: dict[str, float]) -> None:
            with _said_of(path):
                file.write(json.dumps(values).encode() + b"\n")

        yield write


@contextmanager
def _said_of(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError(f"--log {shown(path)}: can't be written ({error.strerror})") from None


def _check(files: Files) -> None:
    """Refuse before the run what would lose it, or a file of another kind.

    A log, a record and a picture of an earlier run are replaced.
    """
    named: dict[Path, str] = {}
    kinds: tuple[tuple[str, str | None, Callable[[bytes], bool]], ...] = (
        ("--log", files.log, lambda line: _has_key(line, "step") and not _has_key(line, "rlproof")),
        ("--record", files.record, lambda line: _has_key(line, "rlproof")),
        ("--plot", files.plot, lambda line: line.startswith(b"<svg")),
    )
    for option, path, is_ours in kinds:
        if path is not None:
            _check_one(option, path, is_ours)
            other = named.setdefault(Path(path).resolve(), option)
            if other != option:
                raise ConfigError(f"{option} {shown(path)}: the file of {other}; name another one")
    if files.record is not None and os.path.isfile(files.record):
        os.unlink(os.path.realpath(files.record))  # a recorder only appends


def _check_one(option: str, path: str, is_ours: Callable[[bytes], bool]) -> None:
    parent = Path(path).resolve().parent
    if not parent.is_dir():
        raise ConfigError(f"{option} {shown(path)}: there is no folder {shown(str(parent))}")
    if os.path.isdir(path):
        raise ConfigError(f"{option} {shown(path)}: is a folder, expected the name of a file")
    if not os.access(path if os.path.exists(path) else parent, os.W_OK):
        raise ConfigError(f"{option} {shown(path)}: can't be written (permission denied)")
    if not os.path.isfile(path):
        return
    try:
        with open(path, "rb") as file:
            first = file.readline(1 << 20)
    except OSError as error:
        raise ConfigError(f"{option} {shown(path)}: can't be read ({error.strerror})") from None
    if first.strip() and not is_ours(first):
        raise ConfigError(
            f"{option} {shown(path)}: exists and holds something else; name another file, or "
            "remove it"
        )


def _has_key(line: bytes, key: str) -> bool:
    try:
        value: Any = json.loads(line)
    except ValueError:
        return False
    return isinstance(value, dict) and key in value


def curves(settings: Settings, history: History) -> list[Curve]:
    """What is plotted: the reward, the divergence, and the clip fraction where there is one."""
    rows = 4 * settings.group_size
    made = [
        Curve("reward", f"mean of {rows} completions", _column(history, "reward"), top=1.0),
        Curve("KL to the reference", "nats", _column(history, "kl")),
    ]
    if "clip_frac" in history[0]:
        shares = _column(history, "clip_frac")
        made.append(Curve("clip fraction", "share of tokens", shares, percent=True))
    return made


def _column(history: History, name: str) -> tuple[float, ...]:
    return tuple(values[name] for values in history)


def _plot(files: Files, settings: Settings, history: History) -> None:
    if files.plot is not None:
        title = f"GRPO on a table of logits: {settings.objective or 'tiny'}, seed {settings.seed}"
        page = svg(curves(settings, history), title, _summary(history))
        write_atomically(files.plot, page, "--plot")


def _opening(settings: Settings, width: int) -> str:
    updates = "1 update" if settings.epochs == 1 else f"{settings.epochs} updates"
    said = (
        f"{settings.objective or 'tiny'}: 4 prompts × {settings.group_size} completions and "
        f"{updates} a step, lr {settings.lr:g}, seed {settings.seed}"
    )
    alone = "note: a group of one has nothing to be compared with; its advantage is often 0"
    return _lines_of(width, said, *([alone] if settings.group_size == 1 else ()))


def _lines_of(width: int, *sentences: str) -> str:
    return "".join(f"{line}\n" for said in sentences for line in textwrap.wrap(said, width))


def _ends(history: History) -> tuple[int, float, float]:
    """Steps in a tenth of the run, and the mean reward of the first and of the last tenth."""
    tenth = max(1, len(history) // 10)
    rewards = _column(history, "reward")
    return tenth, sum(rewards[:tenth]) / tenth, sum(rewards[-tenth:]) / tenth


def _summary(history: History) -> str:
    tenth, first, last = _ends(history)
    steps = "step" if tenth == 1 else f"{tenth} steps"
    return (
        f"{len(history)} steps. Mean reward of the first {steps} {first:.3f}, of the last {steps} "
        f"{last:.3f}; KL to the reference {history[-1]['kl']:.3g} nats at the last step."
    )


def _closing(run: Run, history: History, seconds: float | None, screen: Screen) -> str:
    tenth, first, last = _ends(history)
    took = "" if seconds is None else f" in {seconds:.1f} s"
    count = "1 step" if len(history) == 1 else f"{len(history)} steps"
    over = "" if tenth == 1 else f" (means of {tenth} steps)"
    curves_drawn = terminal(curves(run.settings, history), screen.width, screen.chars)
    return f"\n{curves_drawn}\n" + _lines_of(
        screen.width,
        f"{count}{took}: reward {first:.3f} at first, {last:.3f} at the end{over}",
        f"expected reward of the policy, exactly: {run.expected_reward:.4f}",
    )


def _hints(files: Files) -> str:
    paths = [path for path in (files.log, files.record) if path is not None]
    judged = " and ".join(f"`rlproof inspect {shown(path)}`" for path in paths)
    lines = [f"plot: {shown(files.plot)}"] if files.plot else []
    if judged:
        lines.append(f"{judged} judge{'s' if len(paths) == 1 else ''} the run")
    return "".join(f"{line}\n" for line in lines)
