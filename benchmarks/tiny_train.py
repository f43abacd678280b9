"""How much faster the tiny trainer's closed form is than the same run by numeric gradient.

    python benchmarks/tiny_train.py [ROUNDS]

Runs `rlproof.tiny.train` at its defaults both ways, one after the other, in CPU time, and prints
the median of the ratios. Ends with 1 if the two runs differ: logits by more than 1e-8, or the
history at all. The numeric side pays for the checks of `grpo_loss` at each of its 3,840 calls, so
the ratio is printed for it without them as well.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from rlproof import tiny

Run = tuple[tiny.Table, list[dict[str, float]]]


def timed(gradient: str) -> tuple[float, Run]:
    """CPU seconds of a run, and what it gave."""
    start = time.process_time()
    run = tiny.train(gradient=gradient)  # type: ignore[arg-type]
    return time.process_time() - start, run


def unchecked() -> tuple[float, Run]:
    """The numeric run with a batch that is looked at once a step instead of at every call."""
    checked, seen = tiny._real_tokens, {}

    def once(mask: Any, *_: Any, **__: Any) -> Any:
        if id(mask) not in seen:
            seen.clear()  # the last one is alive as long as its step, so its id is its own
            seen[id(mask)] = mask, checked(mask, None)
        return seen[id(mask)][1]

    tiny._real_tokens = once
    try:
        return timed("numeric")
    finally:
        tiny._real_tokens = checked


def gap(left: tiny.Table, right: tiny.Table) -> float:
    pairs = (p for rows in zip(left, right, strict=True) for p in zip(*rows, strict=True))
    return max(abs(a - b) for a, b in pairs)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    sides: list[Callable[[], tuple[float, Run]]] = [
        lambda: timed("closed-form"), lambda: timed("numeric"), unchecked,
    ]  # fmt: skip
    took = [[side() for side in sides] for _ in range(rounds)]
    closed, numeric, _ = (run for _, run in took[0])
    far, same = gap(closed[0], numeric[0]), closed[1] == numeric[1]
    fast = [row[0][0] for row in took]
    for name, column in (("numeric", 1), ("numeric without checks", 2)):
        slow = [row[column][0] for row in took]
        ratios = sorted(s / f for s, f in zip(slow, fast, strict=True))
        print(
            f"{name}: {median(ratios):.1f} times the closed form ({ratios[0]:.1f} to "
            f"{ratios[-1]:.1f}), medians {median(slow) * 1e3:.0f} and {median(fast) * 1e3:.1f} ms"
        )
    print(f"largest difference of a logit {far:.1e}, history {'the same' if same else 'differs'}")
    sys.exit(0 if same and far < 1e-8 else 1)


if __name__ == "__main__":
    main()
