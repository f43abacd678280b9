"""What recording and metrics cost a training step: medians of ratios from one run.

`python benchmarks/train_record.py [STEPS]`. One trainer takes steps in turn with the recorder due
at each step, with records every 20 steps as by default, and without; the sides are interleaved.
The judgement of the first step is timed warm: its imports take some more time once.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.support import tiny_policy

from rlproof.train import TrainConfig, Trainer
from rlproof.watch.record import Recorder

VOCABULARY, WIDTH, LENGTH = 4000, 128, 48


def trainer(folder: str) -> Trainer:
    settings = tiny_policy.llama(
        VOCABULARY, WIDTH, max_position_embeddings=256, num_attention_heads=4, num_key_value_heads=4
    )
    config = TrainConfig.of({
        "run": {"folder": folder, "steps": 10**6}, "objective": {"recipe": "dapo"},
        "batch": {"prompts": 4, "group": 8}, "sampling": {"max_tokens": LENGTH},
        "metrics": {"entropy": 0}, "record": {"every": 0}, "optimizer": {"lr": 1e-4},
    })  # fmt: skip
    return Trainer(
        config, rewards=[tiny_policy.share_of_a], prompts=tiny_policy.PROMPTS,
        model=tiny_policy.model(settings), tokenizer=tiny_policy.tokenizer(),
    )  # fmt: skip


def main(steps: int) -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        one = trainer(f"{folder}/run")
        recorder = Recorder(Path(folder) / "records.jsonl", every=1)
        sides = ("without", "recorded", "entropy", "checked")
        times: dict[str, list[float]] = {side: [] for side in sides}
        for number in range(steps + 2):
            for side, found in times.items():
                one.written.recorder = recorder if side == "recorded" else None
                every = 1 if side == "entropy" else 0
                object.__setattr__(one.config.metrics, "entropy", every)
                object.__setattr__(one.config.record, "check_first_step", side == "checked")
                one.step = 0 if side == "checked" else 1  # the first step is the one judged
                began = time.perf_counter()
                one._one_step()
                found += [time.perf_counter() - began] if number >= 2 else []
        base = statistics.median(times["without"])
        for side in ("recorded", "entropy"):
            ratios = [b / a for a, b in zip(times["without"], times[side], strict=True)]
            ratio = statistics.median(ratios)
            every = 20 if side == "recorded" else 5
            print(
                f"{side}: {ratio:.3f} of a step of {base:.2f} s without; every {every} steps "
                f"{1 + (ratio - 1) / every:.4f}"
            )
        ratios = [b / a for a, b in zip(times["without"], times["checked"], strict=True)]
        print(f"checked: {statistics.median(ratios):.3f} of a step, once a run")
        one.written.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
