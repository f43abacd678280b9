"""The child's loop: one JSON request a line in, one JSON answer a line out.

The script's own input and output are the null device, so that nothing it prints can be
taken for an answer.
"""

from __future__ import annotations

import json
import os
from typing import Any, TextIO


def _private_pipes() -> tuple[TextIO, TextIO]:
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    return requests, answers


def _serve(requests: TextIO, answers: TextIO) -> None:
    from rlproof.bind.child.calls import call_with_state, perform
    from rlproof.bind.child.guard import GUARD, end_with_parent, limit_resources
    from rlproof.bind.child.landlock import forbid_writes
    from rlproof.bind.child.load import load
    from rlproof.bind.child.outlined import define
    from rlproof.bind.child.trace import record

    end_with_parent()
    os.environ["JAX_ENABLE_X64"] = "1"  # differences of values in single precision are noise
    GUARD.install()
    encode, decode = json.JSONEncoder().encode, json.loads  # the script may patch `json`
    module: Any = None
    for line in requests:
        request = decode(line)
        answer: Any
        match request["op"]:
            case "load":
                module, reasons = load(request["path"], request["text"], request["seconds"])
                reasons |= define(module, request["outlined"])
                limit_resources()
                forbid_writes()
                GUARD.arm()
                answer = {"reasons": reasons}
            case "call":
                answer = [perform(module, spec) for spec in request["calls"]]
            case "state":
                answer = call_with_state(module, request)
            case "record":
                answer = record(module, request)
            case "rehearse":
                from rlproof.bind.child.rehearsal.run import rehearse

                answer = rehearse(module, request)
        answers.write(encode(answer) + "\n")
        answers.flush()


def serve() -> None:
    """Answer until the requests end."""
    _serve(*_private_pipes())


if __name__ == "__main__":
    serve()
