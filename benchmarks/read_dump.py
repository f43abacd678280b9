"""Seconds and peak memory of `rlproof inspect` over a generated rollout dump.

    python benchmarks/read_dump.py [MEGABYTES] [FOLDER]

Writes a dump of that size (2000 MB unless said) with prompts, completions, rewards and
group-normalised advantages, inspects it in a process of its own, and deletes it again.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GROUP, PROMPTS = 8, 64
INSPECT = (
    "import resource, sys\n"
    "from rlproof.watch.command import inspect_path\n"
    "shown = inspect_path(sys.argv[1], ('objective=grpo',))\n"
    "peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
    "print(shown.completions, len(shown.findings), peak)\n"
)


def generate(path: Path, megabytes: int) -> int:
    """Write the dump; returns its rows."""
    rng, rows, size, step = random.Random(0), 0, 0, 0
    words = " ".join(rng.choice(("so", "then", "let", "x", "equal", "seven")) for _ in range(700))
    with path.open("w") as file:
        while size < megabytes * 1_000_000:
            for prompt in range(PROMPTS):
                rewards = [rng.choice((0.0, 0.5, 1.0)) for _ in range(GROUP)]
                mean = sum(rewards) / GROUP
                std = (sum((r - mean) ** 2 for r in rewards) / (GROUP - 1)) ** 0.5
                for k, reward in enumerate(rewards):
                    row = {
                        "step": step, "prompt": f"question {step}/{prompt}",
                        "completion": f"{k} {words} {rng.random()}", "reward": reward,
                        "advantage": (reward - mean) / (std + 1e-4) if std else 0.0,
                    }  # fmt: skip
                    size += file.write(json.dumps(row) + "\n")
                    rows += 1
            step += 1
    return rows


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    folder = sys.argv[2] if len(sys.argv) > 2 else None
    with tempfile.TemporaryDirectory(dir=folder) as made:
        path = Path(made) / "dump.jsonl"
        rows = generate(path, megabytes)
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", INSPECT, str(path)], check=True, capture_output=True, text=True
        )
        seconds = time.perf_counter() - start
    seen, findings, peak = map(int, done.stdout.split())
    assert seen == rows, (seen, rows)
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, others kilobytes
    print(
        f"{megabytes} MB, {rows} completions: {seconds:.1f} s, "
        f"{megabytes / seconds:.0f} MB/s, peak {peak * unit / 1e6:.0f} MB, {findings} findings"
    )


if __name__ == "__main__":
    main()
