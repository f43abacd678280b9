"""A thin OpenAI-compatible server around a tiny language model, which can be told to misbehave.

It samples row by row without a cache, by code that shares nothing with the package's sampler.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Served:
    """One server: where it is, what it was asked, how it misbehaves."""

    model: Any
    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    called: list[tuple[str, Any]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    """Answered first, one a request; then it behaves."""
    spoil: Callable[[dict[str, Any]], dict[str, Any] | None] = lambda answer: answer
    """Changes an answer."""
    wire: str = ""
    """`slow`, `trickle`, `cut` or `reset` in the middle of the body, `not json`, or well."""
    running: int = 0
    most: int = 0
    """The most answers that were made at once."""
    counting: threading.Lock = field(default_factory=threading.Lock)


def complete(model: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """The answer of a well-behaved server."""
    import torch

    generator = torch.Generator().manual_seed(asked["seed"])
    ids, logps, reason = list(asked["prompt"]), [], "length"
    with torch.no_grad():
        for _ in range(asked["max_tokens"]):
            scaled = model(input_ids=torch.tensor([ids])).logits[0, -1] / asked["temperature"]
            probs = scaled.softmax(0)
            ids.append(int(torch.multinomial(probs, 1, generator=generator)))
            logps.append(float(probs[ids[-1]].log()))
            if ids[-1] in asked["stop_token_ids"]:
                reason = "stop"
                break
    new = ids[len(asked["prompt"]) :]
    choice = {
        "index": 0, "text": " ".join(map(str, new)), "finish_reason": reason,
        "logprobs": {"tokens": [f"token_id:{n}" for n in new], "token_logprobs": logps},
        "token_ids": new, "prompt_token_ids": asked["prompt"],
    }  # fmt: skip
    return {"object": "text_completion", "choices": [choice]}


@contextmanager
def _counted(served: Served) -> Iterator[None]:
    """Counts the answers that are being made at once."""
    with served.counting:
        served.running += 1
        served.most = max(served.most, served.running)
    try:
        yield
    finally:
        with served.counting:
            served.running -= 1


class _Handler(BaseHTTPRequestHandler):
    served: Served

    def log_message(self, *args: Any) -> None:
        """Silent."""

    def do_POST(self) -> None:
        served = self.served
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/completions":
            served.called.append((self.path, body))
            self._send(200, b"")
            return
        served.asked.append(body)
        if served.statuses:
            self._send(served.statuses.pop(0), b'{"error": "out of order"}')
            return
        with _counted(served):  # over before the client can ask again
            answer = served.spoil(complete(served.model, body))
        self._misbehave(json.dumps(answer).encode())

    def _misbehave(self, data: bytes) -> None:
        wire = self.served.wire
        if wire == "slow":
            time.sleep(3)
        if wire == "not json":
            data = b"<html>"
        if wire not in ("cut", "trickle", "reset"):
            self._send(200, data)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        for byte in data[: len(data) // 2]:
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            time.sleep(0.05 if wire == "trickle" else 0)
        if wire == "reset":
            time.sleep(0.2)  # the client has begun to read
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            return
        self.connection.shutdown(socket.SHUT_RDWR)

    def _send(self, status: int, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *args: Any) -> None:
        """A client that hangs up is part of the tests."""


@contextmanager
def serving(model: Any) -> Iterator[Served]:
    """A running server; it is gone afterwards."""
    served = Served(model)
    server = _Quiet(("127.0.0.1", 0), type("Handler", (_Handler,), {"served": served}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    served.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
