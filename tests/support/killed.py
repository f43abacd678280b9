"""Trains in a child that is killed (SIGKILL) after random times and resumed, until it has finished.

`python -m tests.support.killed FOLDER SEED` prints how often it was killed, and whether weights and
metrics are those of a run that nobody killed. Modules are imported once; each child is a fork.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import torch

from rlproof.train import checkpoint
from tests.support import tiny_policy
from tests.train.test_checkpoint import logged, trainer

STEPS = 12


def child(folder: Path) -> int:
    """Train to the end, from wherever the folder is."""
    pid = os.fork()
    if pid:
        return pid
    try:
        begun = (folder / "metrics.jsonl").exists()
        trainer(folder, resume=begun, run={"steps": STEPS}).train()
        os._exit(0)
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        os._exit(1)


def run(folder: Path, draw: random.Random | None = None, longest: float = 0.0) -> int:
    """How often the run was killed before it finished: at most 10 times."""
    kills = 0
    while True:
        pid = child(folder)
        deadline = None
        if draw is not None and kills < 10:
            deadline = time.monotonic() + draw.uniform(0, longest)
        while True:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                if os.waitstatus_to_exitcode(status) == 0:
                    return kills
                raise SystemExit("a resumed run failed")
            if deadline is not None and time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                kills += 1
                break
            time.sleep(0.005)


def final(folder: Path) -> dict[str, object]:
    last = checkpoint.saved(folder)[-1]
    tensors = checkpoint.tensors_from(last / "weights.safetensors")
    return {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}


if __name__ == "__main__":
    torch.set_num_threads(1)
    place, seed = Path(sys.argv[1]), int(sys.argv[2])
    assert tiny_policy.PROMPTS
    began = time.monotonic()
    run(place / "whole")
    count = run(place / "killed", random.Random(seed), 0.7 * (time.monotonic() - began))
    print(json.dumps({
        "kills": count,
        "weights": final(place / "whole") == final(place / "killed"),
        "metrics": logged(place / "whole") == logged(place / "killed"),
        "records": (place / "whole/steps.rlproof.jsonl").read_bytes()
        == (place / "killed/steps.rlproof.jsonl").read_bytes(),
    }))  # fmt: skip
