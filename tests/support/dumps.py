"""Rollout dumps with planted faults, as rows and as a file of JSON lines."""

from __future__ import annotations

import json
import random
from statistics import fmean, pstdev

PROMPTS, GROUP = 4, 6


def rows(steps, fault="", seed=0):
    """Rows of TRL's fields, in order. `fault`: batch, unscored, repeated, same, pushed or none."""
    rng, found = random.Random(seed), []
    for step in range(steps):
        rewards = [rng.choice((0.0, 0.5, 1.0)) for _ in range(PROMPTS * GROUP)]
        if fault == "pushed":
            rewards[:GROUP] = [0.5] * GROUP
        for p in range(PROMPTS):
            own = rewards[p * GROUP : (p + 1) * GROUP]
            over = rewards if fault == "batch" else own
            for k, reward in enumerate(own):
                spread = pstdev(over) or 1.0
                text = f"the answer to question number {p} is {rng.random()}"
                if fault == "repeated":
                    text = f"always the very same words, {k}"
                if fault == "same":
                    text = f"nothing but step {step} and question {p}"
                found.append(
                    {
                        "step": step,
                        "prompt": [{"role": "user", "content": f"question {p}"}],
                        "completion": text,
                        "reward": reward,
                        "advantage": (reward - fmean(over)) / spread,
                    }
                )
                if fault == "pushed" and p == 0 and step % 3 == 1:
                    found[-1]["advantage"] = 0.25
                if fault == "unscored" and step == 7 and k == 2:
                    found[-1]["reward"] = None
    return found


def write(path, entries):
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return path
