"""What recording costs of a step of the tiny trainer, as a share from one run.

    python benchmarks/record_time.py [ROUNDS]

Trains `rlproof.tiny` on 32 prompts × 8 completions of up to 32 tokens with `rlproof.record` in
the loop, at the default interval and at every step, and prints the share of the wall time that
was spent in the calls: both are measured inside the same run, so a busy machine slows both.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from pathlib import Path

import rlproof
from rlproof import tiny
from rlproof.watch.record import EVERY

PROMPTS, GROUP, LENGTH, STEPS, EPOCHS = tuple(range(32)), 8, 32, 40, 2


def run(path: Path, every: int, seed: int = 0) -> tuple[float, float, int]:
    """Seconds of the run, seconds inside `rlproof.record`, bytes written."""
    rng = random.Random(seed)
    theta = [[0.0] * tiny.VOCAB for _ in PROMPTS]
    ref = [row[:] for row in theta]
    spent, start = 0.0, time.perf_counter()
    for step in range(STEPS):
        rows, tokens, mask, rewards = tiny.rollout(theta, PROMPTS, GROUP, LENGTH, rng)
        adv = tiny.group_advantages(rewards, GROUP)
        old = tiny.token_logps(theta, rows, tokens)
        far = tiny.token_logps(ref, rows, tokens)
        for update in range(EPOCHS):
            new = tiny.token_logps(theta, rows, tokens)
            loss = tiny.grpo_loss(new, old, far, adv, mask)
            before = time.perf_counter()
            rlproof.record(
                step=step, update=update, rewards=rewards, groups=GROUP, advantages=adv,
                new_logps=new, old_logps=old, ref_logps=far, mask=mask, tokens=tokens, loss=loss,
                path=path, every=every,
            )  # fmt: skip
            spent += time.perf_counter() - before
            slopes = tiny.grpo_grad(theta, rows, tokens, old, far, adv, mask)
            for row, slope in zip(theta, slopes, strict=True):
                for v, g in enumerate(slope):
                    row[v] -= 2.0 * g
    return time.perf_counter() - start, spent, os.path.getsize(path)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as folder:
        for every in (EVERY, 1):
            shares, size = [], 0
            for i in range(rounds):
                whole, spent, size = run(Path(folder) / f"{every}-{i}.jsonl", every)
                shares.append(spent / whole)
            shares.sort()
            records = EPOCHS * -(-STEPS // every)
            print(
                f"every {every:>2}: median {shares[rounds // 2]:.2%} of a step, "
                f"largest {shares[-1]:.2%}, {size / records / 1000:.0f} kB a record"
            )


if __name__ == "__main__":
    main()
