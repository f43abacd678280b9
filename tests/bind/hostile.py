"""What a script's function may try, and helpers to see whether it got away with it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

from rlproof.bind.sandbox import ChildDiedError, Sandbox
from rlproof.read.source import Source, load

_HEAD = """\
import ctypes, math, multiprocessing, os, pathlib, shutil, signal, socket, sqlite3, subprocess
import sys, tempfile, threading, time, urllib.request
try:
    import numpy
except ImportError:
    numpy = None
"""


class Try(NamedTuple):
    """A body for a function, and a part of the reason that must be reported."""

    name: str
    body: str
    reason: str = ""

    def __str__(self) -> str:
        return self.name


_TELL = "for n in range(3, 9):\n  try: os.write(n, {})\n  except OSError: pass"
SPOIL = _TELL.format("b'7' + bytes([10])")
FLOOD = (
    "while True:\n  for n in range(3, 9):\n"
    "   try: os.write(n, b'x' * 10**6)\n   except OSError: pass"
)

# Each leaves a trace in its folder when nothing stops it: see test_each_leaves_a_trace.
TRACES = [
    Try("open", "open('new', 'w')", "tried to write 'new'"),
    Try("append", "open('kept.txt', 'a').write('x')", "tried to write 'kept.txt'"),
    Try("update", "open('kept.txt', 'r+').truncate(1)", "tried to write 'kept.txt'"),
    Try("os_open", "os.open('new', os.O_CREAT | os.O_WRONLY)", "tried to write 'new'"),
    Try("pathlib", "pathlib.Path('new').write_text('x')", "tried to write"),
    Try("touch", "pathlib.Path('new').touch()", "tried to write"),
    Try("tempfile", "tempfile.mkstemp(dir='.')", "tried to write"),
    Try("mkdir", "os.makedirs('a/b')", "tried to make a folder"),
    Try("remove", "os.remove('kept.txt')", "tried to delete a file"),
    Try("unlink", "pathlib.Path('kept.txt').unlink()", "tried to delete a file"),
    Try("rename", "os.rename('kept.txt', 'new')", "tried to rename a file"),
    Try("replace", "os.replace('kept.txt', 'new')", "tried to rename a file"),
    Try("rmtree", "shutil.rmtree('folder')", "tried to delete a folder"),
    Try("copy", "shutil.copy('kept.txt', 'new')", "tried to write"),
    Try("symlink", "os.symlink('kept.txt', 'new')", "tried to make a link"),
    Try("link", "os.link('kept.txt', 'new')", "tried to make a link"),
    Try("truncate", "os.truncate('kept.txt', 0)", "tried to write a file"),
    Try("chmod", "os.chmod('kept.txt', 0o777)", "tried to change a file"),
    Try("utime", "os.utime('kept.txt', (1, 1))", "tried to change a file"),
    Try("sqlite", "sqlite3.connect('new').execute('create table t (x)')", "tried to write 'new'"),
    Try("numpy", "numpy.save('new.npy', [1])", "tried to write 'new.npy'"),
    Try("fork", "os.fork() or (open('new', 'w'), os._exit(0))", "tried to start a process"),
    Try("system", "os.system('echo > new')", "tried to start a process"),
    Try("popen", "subprocess.run(['touch', 'new'])", "tried to start a process"),
    Try("exec", "os.execvp('touch', ['touch', 'new'])", "tried to start a process"),
    Try("posix_spawn", "os.waitpid(os.posix_spawn('/bin/sh', ['sh', '-c', 'echo > new'], {}), 0)",
        "tried to start a process"),
    Try("multiprocessing", "multiprocessing.get_context('fork').Process(target=open, "
        "args=('new', 'w')).start(); time.sleep(0.3)", "tried to start a process"),
]  # fmt: skip

# Made outside Python's own `open`, so that only the kernel can refuse them.
NATIVE_TRACES = [
    Try("mkfifo", "os.mkfifo('new')", "Permission denied"),
    Try("creat", "ctypes.CDLL(None).creat(b'new', 0o644)"),
    Try("overwrite", "ctypes.CDLL(None).creat(b'kept.txt', 0o644)"),
    Try("c_unlink", "ctypes.CDLL(None).unlink(b'kept.txt')"),
    Try("c_rename", "ctypes.CDLL(None).rename(b'kept.txt', b'new')"),
]

# Ends the call with a reason, and never rlproof.
ENDINGS = [
    Try("raises", "raise ValueError('no\\nway')", "no"),
    Try("exit", "sys.exit(3)", "called sys.exit(3)"),
    Try("exit_quietly", "os._exit(4)", "ended the process (exit status 4)"),
    Try("abort", "os.abort()", "crashed the interpreter (SIGABRT)"),
    Try("segfault", "ctypes.string_at(0)", "crashed the interpreter (SIGSEGV)"),
    Try("realtime_signal", "signal.raise_signal(40)", "crashed the interpreter (signal 40)"),
    Try("keyboard", "raise KeyboardInterrupt", ""),
    Try("generator_exit", "raise GeneratorExit", ""),
    Try("recursion", "return f()", "recursion"),
    Try("memory", "[0] * 10**11", ""),
    Try("stdin", "input()", "EOF"),
    Try("kill_parent", "os.kill(os.getppid(), 9)", "tried to send a signal"),
    Try("kill_parents_group", "os.killpg(os.getpgid(os.getppid()), 9)", "tried to send a signal"),
    Try("tcp", "urllib.request.urlopen('http://127.0.0.1:9')", "tried to use the network"),
    Try("udp", "socket.socket(2, 2).sendto(b'x', ('127.0.0.1', 9))", "tried to use the network"),
    Try("lookup", "socket.gethostbyname('localhost')", "tried to use the network"),
    Try("answers", _TELL.format("b'junk' + bytes([10])"), "not its own"),
    Try("wrong_answers", _TELL.format("b'7' + bytes([10])"), "not its own"),
    Try("close_all", "os.closerange(0, 100)", "ended the process"),
    Try("broken_text", "raise type('E', (Exception,), {'__str__': lambda s: 1 / 0})()",
        "its text can't be had"),
    Try("escapes", "raise ValueError('\\x1b[31mred\\udc80')", "\\x1b[31mred\\udc80"),
    Try("long_text", "raise ValueError('x' * 10**6)", "x" * 200),
    Try("huge_integer", "return 10**9000", "too large"),
    Try("object", "return object()", "object"),
    Try("itself", "x = []; x.append(x); return x", ""),
    Try("too_much", "return [0.0] * 10**6", "more than"),
    Try("builtins", "import builtins; builtins.isinstance = builtins.repr = None", ""),
    Try("spawn", "multiprocessing.get_context('spawn').Process(target=print).start()",
        "tried to start a process"),
]  # fmt: skip

# Never ends by itself.
HANGS = [
    Try("loop", "while True: pass"),
    Try("sleep", "time.sleep(99)"),
    Try("in_c", "9**9**9"),
    Try("catches", "while True:\n  try:\n   while True: pass\n  except BaseException: pass"),
    Try("print", "while True: print('x' * 10**6)"),
    Try("stopped", "signal.raise_signal(signal.SIGSTOP)"),
    Try("ignores_signals", "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(99)"),
    Try("deep", "sys.setrecursionlimit(10**9); x = lambda: x(); x()"),
    Try("thread", "t = threading.Thread(target=time.sleep, args=(99,)); t.start(); t.join()"),
]

# Odd, but nothing that hinders an answer.
HARMLESS = [
    Try("megabyte", "print('x' * 10**6, flush=True)"),
    Try("descriptors", "os.write(1, b'junk\\n'); os.write(2, b'Traceback')"),
    Try("close_streams", "sys.stdout.close(); sys.stderr.close(); sys.stdin.close()"),
    Try("read_input", "assert sys.stdin.read() == ''"),
    Try("folder", "os.chdir('/')"),
    Try("json", "import json; json.dumps = json.loads = json.JSONEncoder = None"),
    Try("modules", "sys.modules.clear()"),
    Try("warning", "import warnings; warnings.warn('x')"),
    Try("null", "open(os.devnull, 'w').write('x')"),
    Try("handler", "signal.signal(signal.SIGTERM, signal.SIG_IGN)"),
    Try("idle_thread", "threading.Thread(target=time.sleep, args=(99,)).start()"),
]


def script(body: str, head: str = _HEAD) -> str:
    """A script whose function `f` has this body and returns 1.5."""
    return f"{head}\ndef f():\n {body}\n return 1.5\n"


def snapshot(folder: Path) -> dict[str, tuple[str, int, float]]:
    """Every file below a folder: kind and content, mode, time of change."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = path.read_text("latin-1") if path.is_file() else str(status.st_mode)
        found[str(path.relative_to(folder))] = (content, status.st_mode, status.st_mtime)
    return found


def prepare(folder: Path) -> None:
    """Files to lose."""
    (folder / "kept.txt").write_text("kept")
    (folder / "folder").mkdir()
    (folder / "folder" / "inner.txt").write_text("inner")


def ask(source: Source, seconds: float = 10.0) -> str:
    """Call `f` in a sandbox: what it returned, or the reason why not."""
    spec = {"function": "f", "arguments": {}, "want": "plain"}
    with Sandbox(source, seconds) as sandbox:
        try:
            (answer,) = sandbox.call([spec])
        except ChildDiedError as error:
            return str(error)
    error = answer.get("error")
    return f"{error['type']}: {error['message']}" if error else repr(answer["value"])


def written(folder: Path, text: str) -> Source:
    """A script in a folder, read."""
    path = folder / "script.py"
    path.write_text(text, "utf-8", errors="surrogateescape")
    return load(str(path))


def survivors(mark: str, patience: float = 2.0) -> list[str]:
    """Processes other than this one that inherited a mark in their environment."""
    deadline = time.monotonic() + patience
    while (found := _marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def _marked(mark: str) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if int(entry.name) != os.getpid() and mark.encode() in (entry / "environ").read_bytes():
                found.append(entry.name)
        except OSError:
            continue
    return found
