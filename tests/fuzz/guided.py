"""Fuzz one target by coverage: `python -m tests.fuzz.guided lines --seconds 300 --finds found/`.

Needs `pip install atheris`. Half of the mutations are libFuzzer's, half those of `mutate`. What
goes wrong is written to the folder, one file a place in the source, the smallest input that came;
the run goes on.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--finds", type=Path, default=Path("finds"))
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def place(error: BaseException) -> str:
    """Where it went wrong: the last line of rlproof that was in charge."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "rlproof" in Path(frame.filename).parts]
    last = (own or list(frames))[-1]
    return f"{type(error).__name__}-{Path(last.filename).stem}-{last.lineno}"


def main() -> None:
    """Run until the time is over, then print what libFuzzer counted."""
    import atheris

    options = _options()
    with atheris.instrument_imports(include=["rlproof"]), tempfile.TemporaryDirectory() as made:
        from tests.fuzz.mutate import mutated
        from tests.fuzz.seeds import seeds
        from tests.fuzz.targets import held

        for raw in seeds(options.target):  # imports, under instrumentation, all that it needs
            held(options.target, raw, Path(made), 3600)
    folder = Path(tempfile.mkdtemp(prefix="rlproof-fuzz-"))
    corpus, work = folder / "corpus", folder / "work"
    corpus.mkdir(), work.mkdir()
    options.finds.mkdir(parents=True, exist_ok=True)
    for number, raw in enumerate(seeds(options.target)):
        (corpus / str(number)).write_bytes(raw)

    def one(raw: bytes) -> None:
        try:
            held(options.target, raw, work, 30)  # all of it is instrumented, and slower
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            file = options.finds / f"{options.target}-{place(error)}"
            if not file.exists() or file.stat().st_size > len(raw):
                file.write_bytes(raw)
                print(f"FOUND {file.name}: {str(error)[:200]}", flush=True)

    def mutator(raw: bytes, most: int, seed: int) -> Any:
        if seed % 2:
            return atheris.Mutate(raw, most)
        return mutated((raw, *seeds(options.target)), seed)[:most]

    atheris.Setup(
        [sys.argv[0], str(corpus), f"-max_total_time={options.seconds}", "-timeout=0",
         "-max_len=32768", "-rss_limit_mb=4096", f"-seed={options.seed}", "-print_final_stats=1"],
        one,
        custom_mutator=mutator,
    )  # fmt: skip
    atheris.Fuzz()


if __name__ == "__main__":
    main()
