"""Append-only files of one JSON record a line, and how they are read again after a crash.

A record is one `write` of one whole line to a file opened for appending, so several processes
can share a local file. What was written survives the death of the process at once; what the
machine loses with its power is at most what was written since the last fsync, one every
`sync_seconds` and one at the end. A line that a crash cut off is closed by the next writer and
skipped, with a note, by the reader.
"""

from __future__ import annotations

import os
import time


class Journal:
    """One file to append to."""

    def __init__(self, path: str, sync_seconds: float = 10.0) -> None:
        self.path = path
        self._sync_seconds = sync_seconds
        self._synced = time.monotonic()
        self._dirty = False
        flags = os.O_CREAT | os.O_APPEND | os.O_RDWR | getattr(os, "O_BINARY", 0)
        self._file = os.open(path, flags, 0o644)
        self.size = os.fstat(self._file).st_size
        if self.size and self._ends_torn():
            self._write(b"\n")

    def _ends_torn(self) -> bool:
        os.lseek(self._file, self.size - 1, os.SEEK_SET)
        return os.read(self._file, 1) != b"\n"

    @property
    def gone(self) -> bool:
        """Whether the file was deleted: what is written then is lost."""
        return os.fstat(self._file).st_nlink == 0

    def append(self, line: bytes) -> None:
        """Write one record; `line` holds no newline."""
        self._write(line + b"\n")
        now = time.monotonic()
        if now - self._synced >= self._sync_seconds:
            self.sync()

    def sync(self) -> None:
        """Write what there is through to the disk."""
        os.fsync(self._file)
        self._synced, self._dirty = time.monotonic(), False

    def _write(self, raw: bytes) -> None:
        written = os.write(self._file, raw)
        while written < len(raw):  # a full disk or a signal: the rest, or the error
            written += os.write(self._file, raw[written:])
        self.size += len(raw)
        self._dirty = True

    def close(self) -> None:
        """Write everything through to the disk. Closing twice is fine."""
        if self._file < 0:
            return
        if self._dirty:
            os.fsync(self._file)
        os.close(self._file)
        self._file = -1
