"""Writes that no audit hook sees (C++, Rust, C), refused by the Linux kernel.

`torch.save`, safetensors or a database library open files without Python's `open`. Landlock
(Linux 5.13 and later) takes the right to write away from this process for good. Elsewhere
this does nothing, and the audit hook stands alone.
"""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every architecture
_VERSION_FLAG, _PATH_BENEATH, _NO_NEW_PRIVILEGES = 1, 1, 38
_WRITE_FILE = 1 << 1
_CHANGES = 0b1_1111_1111_0000 | _WRITE_FILE  # remove and make anything: bits 4 to 12
_REFER, _TRUNCATE = (2, 1 << 13), (3, 1 << 14)  # since version 2, since version 3
_DEVICES = "/dev"  # the null device, and accelerators


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64),)


class _Rule(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def forbid_writes() -> bool:
    """Take away the right to write, make or delete files. Returns whether the system could."""
    if not sys.platform.startswith("linux"):
        return False
    with suppress(OSError, AttributeError):
        return _restrict(ctypes.CDLL(None, use_errno=True))
    return False


def _restrict(libc: ctypes.CDLL) -> bool:
    version = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG)
    if version < 1:
        return False
    handled = _CHANGES
    for since, right in (_REFER, _TRUNCATE):
        handled |= right if version >= since else 0
    ruleset = _Ruleset(handled)
    size = ctypes.c_size_t(ctypes.sizeof(ruleset))
    rules = libc.syscall(_CREATE_RULESET, ctypes.byref(ruleset), size, 0)
    if rules < 0:
        return False
    try:
        _allow_devices(libc, rules)
        libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        return bool(libc.syscall(_RESTRICT_SELF, rules, 0) == 0)
    finally:
        os.close(rules)


def _allow_devices(libc: ctypes.CDLL, rules: int) -> None:
    folder = os.open(_DEVICES, getattr(os, "O_PATH", 0) | os.O_CLOEXEC)
    try:
        rule = _Rule(_WRITE_FILE, folder)
        libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(folder)
