"""JSON over HTTP with the standard library: tries again, ends in time, can be called off."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from rlproof.errors import ConfigError, RolloutError

AGAIN = (408, 425, 429, 500, 502, 503, 504)
"""Statuses after which a request is sent again."""
SHOWN = 300
"""Characters of a server's message that an error shows."""


class _AgainError(Exception):
    """This try failed; another may not."""


class Client:
    """Posts JSON to one server. Threads may share it.

    Args:
        url: `http://host:port`, or https; a path in it is kept, a `/v1` at its end is not.
        timeout: seconds for one try, from connecting to the last byte.
        tries: how often a request is sent at most.
        wait: seconds before the second try; doubled before each further one.
        api_key: sent as a bearer token.

    Raises:
        ConfigError: a setting is out of range, or the URL is none.
    """

    def __init__(
        self, url: str, *, timeout: float, tries: int, wait: float, api_key: str | None = None
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"url is {url!r}; expected one such as http://localhost:8000")
        if not timeout > 0 or tries < 1 or wait < 0:
            raise ConfigError(
                f"timeout is {timeout}, tries {tries}, wait {wait}; expected more than 0 s, 1 or "
                "more, 0 s or more"
            )
        self.url = url
        self._kind = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}[
            parts.scheme
        ]
        self._host, self._port = parts.hostname, parts.port
        self._prefix = parts.path.rstrip("/").removesuffix("/v1")
        self._timeout, self._tries, self._wait = timeout, tries, wait
        self._headers = {"Content-Type": "application/json"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._open: set[socket.socket] = set()

    def post(self, path: str, body: Any, off: threading.Event | None = None) -> Any:
        """The JSON that the server answers; None for an empty body.

        Args:
            path: what to post to.
            body: what to send, as JSON.
            off: no further try is made once it is set; see `call_off`.

        Raises:
            RolloutError: the server refuses the request, or no try brought an answer.
        """
        sent, last, off = json.dumps(body).encode(), "", off or threading.Event()
        for attempt in range(self._tries):
            if attempt and off.wait(self._wait * 2 ** (attempt - 1)):
                break
            try:
                return self._once(path, sent, off)
            except _AgainError as error:
                last = str(error)
            if off.is_set():
                break
        raise RolloutError(
            f"no answer from {self.url}{path} in {self._tries} tries (the last one: {last}); "
            "expected completions: is the server running? No part of the batch was kept"
        )

    def call_off(self, off: threading.Event) -> None:
        """Ends the requests under way, and with `off` set those that wait."""
        off.set()
        for held in list(self._open):
            _shut(held)

    def _once(self, path: str, sent: bytes, off: threading.Event) -> Any:
        connection = self._kind(self._host, self._port, timeout=self._timeout)
        late = threading.Event()
        timer = None
        try:
            connection.connect()
            # kept here: the connection lets go of it once an answer begins
            held: socket.socket = connection.sock
            timer = self._timer(held, late)
            if off.is_set():  # after the socket is listed, so that `call_off` misses none
                raise _AgainError("called off")
            connection.request("POST", self._prefix + path, sent, self._headers)
            with connection.getresponse() as answer:  # closed also where reading fails
                status, data = answer.status, answer.read()
            return _decoded(status, data, f"{self.url}{path}")
        except (OSError, http.client.HTTPException, _AgainError) as error:
            timed_out = late.is_set() or isinstance(error, TimeoutError)
            reason = f"nothing complete within {self._timeout:g} s" if timed_out else error
            raise _AgainError(str(reason) or type(error).__name__) from None
        finally:
            if timer:
                timer.cancel()
                self._open.discard(held)
            connection.close()

    def _timer(self, held: socket.socket, late: threading.Event) -> threading.Timer:
        """Wakes who reads from the socket when the time is up."""

        def give_up() -> None:
            late.set()
            _shut(held)

        timer = threading.Timer(self._timeout, give_up)
        timer.daemon = True
        self._open.add(held)
        timer.start()
        return timer


def _decoded(status: int, data: bytes, where: str) -> Any:
    said = data[:SHOWN].decode("utf-8", "replace").strip()
    if status in AGAIN:
        raise _AgainError(f"status {status}, {said!r}")
    if status != 200:
        raise RolloutError(f"{where} answers with status {status}: {said!r}; expected 200")
    try:
        return json.loads(data) if data.strip() else None
    except ValueError:
        raise _AgainError(f"not JSON: {said!r}") from None


def _shut(held: socket.socket) -> None:
    """Wakes whoever reads from the socket."""
    with suppress(OSError):
        held.shutdown(socket.SHUT_RDWR)
