"""The expected step of a script by plain loops over logits: nothing of rlproof is used.

The policy is one softmax row θ. Every batch of completions is written down with its
probability; its loss is differentiated by θ with central differences, the old log-probs fixed.
"""

from __future__ import annotations

import math
from itertools import product

H = 1e-5
P4 = [0.5, 0.0, -0.5, -1.0]
GRADED = [1.0, 0.6, 0.3, 0.0]
BINARY = [1.0, 0.0, 0.0, 0.0]


def load(text):
    """The names that a script defines."""
    namespace: dict[str, object] = {}
    exec(compile(text, "script", "exec"), namespace)
    return namespace


def log_softmax(theta):
    z = math.log(sum(math.exp(x) for x in theta))
    return [x - z for x in theta]


def differences(f, theta):
    slopes = []
    for v in range(len(theta)):
        up = [x + H * (u == v) for u, x in enumerate(theta)]
        down = [x - H * (u == v) for u, x in enumerate(theta)]
        slopes.append((f(up) - f(down)) / (2 * H))
    return slopes


def array_of(kind):
    """How a script of this library takes a table of numbers."""
    if kind == "torch":
        import torch

        return lambda rows: torch.tensor(rows, dtype=torch.float64)
    if kind == "numpy":
        import numpy as np

        return lambda rows: np.array(rows, float)
    return lambda rows: rows


def completions(words, end, longest):
    """Every sequence that ends at `end` or at the longest length; None for no end token."""
    if end is None:
        return [(v,) for v in range(words)]
    return [
        s
        for n in range(1, longest + 1)
        for s in product(range(words), repeat=n)
        if end not in s[:-1] and (s[-1] == end or n == longest)
    ]


def step(script, kind, theta, rewards, group, ref=None, flat=False):
    """E[−∂L/∂θ] over every batch of `group` completions; rewards by completion.

    `flat` sets every advantage to 0. Padding holds token 0, with its log-probability.
    """
    array = array_of(kind)
    named = {name: f for name, f in script.items() if callable(f)}
    advantages = next(f for name, f in named.items() if name.endswith("_advantages"))
    loss = named["policy_loss"]
    every = list(rewards)
    width = max(map(len, every))
    old_table = log_softmax(theta)
    total = [0.0] * len(theta)
    for rows in product(every, repeat=group):
        chance = math.exp(sum(old_table[v] for row in rows for v in row))
        given = [0.0] * group if flat else [rewards[row] for row in rows]
        adv = array(given) if flat else advantages(array(given), group)
        mask = array([[int(t < len(row)) for t in range(width)] for row in rows])
        padded = [[row[t] if t < len(row) else 0 for t in range(width)] for row in rows]

        def value(th, padded=padded, adv=adv, mask=mask):
            def gather(table):
                return array([[table[v] for v in row] for row in padded])

            arguments = {
                "new_logps": gather(log_softmax(th)), "old_logps": gather(old_table),
                "advantages": adv, "mask": mask,
            }  # fmt: skip
            if "ref_logps" in loss.__code__.co_varnames[: loss.__code__.co_argcount]:
                arguments["ref_logps"] = gather(log_softmax(ref) if ref else old_table)
            return float(loss(**arguments))

        slopes = differences(value, theta)
        total = [a - chance * b for a, b in zip(total, slopes, strict=True)]
    return total


def value_gradient(theta, rewards):
    """∇V by differences of V(θ) = Σ π(o)·r(o)."""

    def value(th):
        table = log_softmax(th)
        return sum(r * math.exp(sum(table[v] for v in row)) for row, r in rewards.items())

    return differences(value, theta)


def degrees(x, y):
    inner = sum(a * b for a, b in zip(x, y, strict=True))
    size = math.hypot(*x) * math.hypot(*y)
    return math.degrees(math.acos(max(-1.0, min(1.0, inner / size))))


def scale(x, y):
    """x = scale·y, where they are parallel."""
    return sum(a * b for a, b in zip(x, y, strict=True)) / sum(b * b for b in y)
