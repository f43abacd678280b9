"""Many files checked by one command: first run, second run, one after the other; and memory.

    python benchmarks/many_files.py [FILES]

The files are the examples, and the examples and healthy twins of the catalogue's pages; where more
are asked for, copies of these that differ by a comment. Prints seconds, the ratio of first to
second run, the largest memory of the command's own process, and whether all reports are the same
bytes. One helper and several are compared on the first files only.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

from rlproof.faults.page import page
from rlproof.faults.registry import catalogue

EXAMPLES = Path(__file__).parents[1] / "examples"
SAMPLE = 16
MEASURED = """
import resource, sys
from rlproof.cli import main
try:
    main(sys.argv[1:])
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)
"""


def scripts() -> Iterator[str]:
    """Texts of scripts, without end."""
    texts = [path.read_text("utf-8") for path in sorted(EXAMPLES.glob("*.py"))]
    for code in catalogue():
        texts += [page(code).planted, page(code).healthy]
    for turn in count():
        yield from (f"{text}\n# copy {turn}\n" for text in texts)


def checked(folder: str, *options: str) -> tuple[float, int, bytes]:
    """Seconds, megabytes and report of one run."""
    line = [sys.executable, "-c", MEASURED, "check", "--format", "json", *options]
    start = time.perf_counter()
    done = subprocess.run(line, cwd=folder, capture_output=True, check=False)
    seconds = time.perf_counter() - start
    return seconds, int(done.stderr.split()[-1]), done.stdout


def main() -> None:
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 120
    os.environ.pop("RLPROOF_CACHE_DIR", None)
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for number, text in enumerate(islice(scripts(), files)):
            names.append(f"script_{number:04}.py")
            Path(folder, names[-1]).write_text(text, "utf-8")
        sample = names[:SAMPLE]
        one, _, alone = checked(folder, "--no-cache", "--jobs", "1", *sample)
        two, _, together = checked(folder, "--no-cache", *sample)
        print(f"{len(sample)} files, one job   {one:8.2f} s")
        print(f"{len(sample)} files, all CPUs  {two:8.2f} s   same bytes: {alone == together}")
        _, small, _ = checked(folder, *sample)
        first, peak, before = checked(folder, *names)
        again = [checked(folder, *names) for _ in range(3)]
        second = min(seconds for seconds, _, _ in again)
        same = all(report == before for _, _, report in again)
        size = sum(p.stat().st_size for p in Path(folder, ".rlproof_cache").iterdir()) / files
        print(f"{files} files, first run  {first:8.2f} s   {peak} MB ({small} MB for {SAMPLE})")
        print(f"{files} files, second run {second:8.2f} s   {again[0][1]} MB   same bytes: {same}")
        print(f"ratio {first / second:.0f}; {size / 1000:.1f} kB an entry")


if __name__ == "__main__":
    main()
