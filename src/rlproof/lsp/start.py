"""The server on the standard streams, which nothing else can then write to."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import BinaryIO

from rlproof.errors import ConfigError


def serve() -> int:
    """Serve one client until it ends; 0 where it asked for a shutdown first, else 1.

    Raises:
        ConfigError: pygls is not installed, or an old one is.
    """
    try:
        import_module("pygls.lsp.server")
    except ImportError:
        raise ConfigError(
            "the language server needs the package pygls, 2.0 or later; install it with "
            "`pip install 'rlproof[lsp]'`"
        ) from None
    from rlproof.lsp.server import Service

    service = Service()
    service.server.start_io(*_private_streams())
    return 0 if service.was_shut_down else 1


def _private_streams() -> tuple[BinaryIO, BinaryIO]:
    """Input and output of the protocol; whatever else prints, prints to stderr."""
    messages, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return messages, answers
