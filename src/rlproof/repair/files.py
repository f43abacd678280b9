"""A script's file as bytes: what an edit of the text makes of them, and a write that can't tear.

The text that is edited has plain newlines and no byte-order mark. Lines that an edit leaves
alone keep their very bytes; new ones get the newline of the line before them.
"""

from __future__ import annotations

import codecs
import io
import os
import stat
import tempfile
import tokenize
from contextlib import suppress
from dataclasses import dataclass

from rlproof.read.source import Source, is_notebook, shown
from rlproof.repair import notebooks
from rlproof.repair.lines import WriteError, respelled, split

_UNKNOWN_TO_ASCII = bytes(range(128)) + b"?" * 128


@dataclass(frozen=True, slots=True)
class Raw:
    """The bytes of one file, and how they are text."""

    path: str
    data: bytes
    encoding: str
    mark: bytes

    def edited(self, text: str) -> bytes:
        """The bytes of the file with this text, which has plain newlines.

        Raises:
            WriteError: the encoding of the file can't express it.
        """
        old = split(self.data.removeprefix(self.mark).decode(self.encoding))
        result = respelled(old, [line for line, _ in old], text.split("\n"))
        try:
            return self.mark + result.encode(self.encoding)
        except UnicodeEncodeError:
            reason = f"the edit needs characters that {self.encoding} lacks"
            raise WriteError(f"{shown(self.path)}: {reason}; the file is untouched") from None


AnyRaw = Raw | notebooks.RawBook


def of_text(path: str, text: str) -> Raw:
    """A file as it would be with the text of an editor, which need not be saved."""
    mark = codecs.BOM_UTF8 if text.startswith("\ufeff") else b""
    return Raw(path, text.encode(), "utf-8", mark)


def load(source: Source) -> AnyRaw:
    """The bytes behind a source, which must still be those that were read.

    Raises:
        WriteError: the file changed, can't be read, or its text does not turn back into its bytes.
    """
    try:
        with open(source.path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise WriteError(f"{shown(source.path)}: can't be read again ({error.strerror})") from None
    if is_notebook(source.path):
        return notebooks.load(source, data)
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    body = data.removeprefix(mark)
    ascii_only = mark + body.translate(_UNKNOWN_TO_ASCII)
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(ascii_only).readline)
        encoding = "utf-8" if encoding == "utf-8-sig" else encoding
        text = body.decode(encoding)
        again = text.encode(encoding)
    except (SyntaxError, UnicodeError, LookupError):
        raise WriteError(_changed(source.path)) from None
    if text.replace("\r\n", "\n").replace("\r", "\n") != source.text:
        raise WriteError(_changed(source.path))
    if again != body:
        raise WriteError(
            f"{shown(source.path)}: {encoding} does not give the same bytes again, so it is not "
            "rewritten; save it as UTF-8"
        )
    return Raw(source.path, data, encoding, mark)


def _changed(path: str) -> str:
    return f"{shown(path)}: changed while it was being checked, so it was left alone; run it again"


def replace(raw: AnyRaw, data: bytes) -> None:
    """Put new bytes in the place of the old ones, whole or not at all.

    A link stays a link: what it points at is replaced. Owner (where allowed) and mode are kept.

    Raises:
        WriteError: the file changed meanwhile or can't be written; it is untouched.
    """
    target = os.path.realpath(raw.path)
    name = shown(raw.path)
    try:
        before = os.stat(target)
        if not stat.S_ISREG(before.st_mode):
            raise WriteError(f"{name}: not a regular file, so it is not rewritten")
        if before.st_nlink > 1:
            raise WriteError(f"{name}: has {before.st_nlink} names (hard links); repair a copy")
        if not os.access(target, os.W_OK):
            raise WriteError(f"{name}: is read-only; its mode is kept and nothing was written")
        _replace(target, raw, data, before)
    except OSError as error:
        raise WriteError(f"{name}: can't be written ({error.strerror}); it is untouched") from None


def _replace(target: str, raw: AnyRaw, data: bytes, before: os.stat_result) -> None:
    folder = os.path.dirname(target)
    descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=".rlproof-", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
            with suppress(OSError):  # only the superuser may give a file away
                os.fchown(file.fileno(), before.st_uid, before.st_gid)
            os.fsync(file.fileno())
        with open(target, "rb") as file:
            if file.read() != raw.data:
                raise WriteError(_changed(raw.path))
        os.replace(temporary, target)
    finally:
        with suppress(OSError):  # after the rename there is none
            os.unlink(temporary)
    _sync(folder)


def _sync(folder: str) -> None:
    """Make the rename itself last through a loss of power, where the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
