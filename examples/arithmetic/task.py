"""Sums of two numbers below 100: which of them are held out, and what is rewarded."""

import random

HELD_OUT = 500
"""Pairs of numbers that are never trained on, neither as a + b nor as b + a."""


def sums():
    """All sums as (prompt, answer): those for training, and those held out.

    They are the same for every seed of a run.
    """
    pairs = [(a, b) for a in range(100) for b in range(a, 100)]
    draw = random.Random(0)
    draw.shuffle(pairs)
    both = [
        [(f"{x}+{y}=", str(x + y)) for x, y in dict.fromkeys([(a, b), (b, a)])] for a, b in pairs
    ]
    held_out = [one for two in both[:HELD_OUT] for one in two]
    trained = [one for two in both[HELD_OUT:] for one in two]
    draw.shuffle(trained)
    return trained, held_out


def exact(completions, answer, **_):
    """1 for the sum and nothing else, 0 otherwise."""
    return [float(text == wanted) for text, wanted in zip(completions, answer)]
