"""Seconds of inspecting a generated dump in one process, and on Ray with all CPUs of this machine.

    python benchmarks/partitions_time.py [MEGABYTES] [FOLDER] [CPUS]

Ray's start and its reading of the file's first block are outside, its shuffle is inside. Both
sides run in turns, twice; the better time of each counts.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import ray
from read_dump import generate

from rlproof.integrations.partitions import inspect_ray
from rlproof.watch.command import inspect_path
from rlproof.watch.facts import facts_of

PARTS = 8
"""Files, so that there is something to share out."""


def cut(path: Path, folder: Path) -> None:
    """The lines of a file in `PARTS` files of about the same size, in order."""
    size = path.stat().st_size
    with path.open("rb") as file:
        for k in range(PARTS):
            with (folder / f"{k}.jsonl").open("wb") as part:
                while file.tell() < size * (k + 1) / PARTS and (line := file.readline()):
                    part.write(line)


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    folder = sys.argv[2] if len(sys.argv) > 2 else None
    cpus = int(sys.argv[3]) if len(sys.argv) > 3 else os.cpu_count()
    ray.init(num_cpus=cpus, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    with tempfile.TemporaryDirectory(dir=folder) as made:
        whole, parts = Path(made) / "dump.jsonl", Path(made) / "parts"
        parts.mkdir()
        rows = generate(whole, megabytes)
        cut(whole, parts)
        best = {"one process": float("inf"), f"Ray, {cpus} CPUs": float("inf")}
        for _ in range(2):
            start = time.perf_counter()
            one = inspect_path(str(whole), ("objective=grpo",))
            middle = time.perf_counter()
            data = ray.data.read_json(str(parts), lines=True, file_extensions=None)
            other = inspect_ray(data, facts_of({"objective": "grpo"}), partitions=PARTS)
            end = time.perf_counter()
            assert one.completions == other.completions == rows
            assert (one.findings, one.said) == (other.findings, other.said)
            for name, seconds in zip(best, (middle - start, end - middle), strict=True):
                best[name] = min(best[name], seconds)
                print(f"  {name}: {seconds:.1f} s", flush=True)
    print(f"{megabytes} MB, {rows} completions: ", end="")
    print("; ".join(f"{k} {v:.1f} s, {megabytes / v:.0f} MB/s" for k, v in best.items()))


if __name__ == "__main__":
    main()
