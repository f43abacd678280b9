"""Trainers that log and record while they run: the tiny one, and the 128 of `trainers`.

Shapes: B rows, T slots.
"""

from __future__ import annotations

import json
import math
import random
from statistics import fmean, pstdev

from rlproof import tiny
from rlproof.watch.record import Recorder


class Logbook:
    """A log of metrics in `log` and a file of records in `records`, step by step."""

    def __init__(self, folder, every=4, facts=None, steps=None):
        self.log, self.records = folder / "log.jsonl", folder / "records.jsonl"
        self.recorder = Recorder(self.records, every=every)
        self.facts = facts or {}
        self.step = -1
        self.rows = []

    def begin(self, rewards, adv, group_size):
        self.step += 1
        self.rewards, self.adv, self.group_size = list(rewards), list(adv), group_size
        groups = [rewards[i : i + group_size] for i in range(0, len(rewards), group_size)]
        self.rows.append(
            {
                "step": self.step,
                "reward": fmean(rewards),
                "reward_std": pstdev(rewards),
                "adv_mean": fmean(adv),
                "adv_std": pstdev(adv),
                "adv_max": max(adv),
                "adv_min": min(adv),
                "zero_std_frac": fmean(float(min(g) == max(g)) for g in groups),
            }
        )

    def update(self, number, new, old, ref, mask, loss, **more):
        real = [(i, t) for i, row in enumerate(mask) for t, m in enumerate(row) if m]
        gaps = [ref[i][t] - new[i][t] for i, t in real]
        if number == 0:
            self.rows[-1] |= {
                "loss": loss,
                "kl": fmean(math.exp(g) - g - 1 for g in gaps),
                **more,
            }
        outside = fmean(float(abs(math.exp(new[i][t] - old[i][t]) - 1) > 0.2) for i, t in real)
        self.rows[-1]["clip_frac"] = max(self.rows[-1].get("clip_frac", 0.0), outside)
        self.recorder.record(
            step=self.step, update=number, rewards=self.rewards, groups=self.group_size,
            advantages=self.adv, new_logps=new, old_logps=old, ref_logps=ref, mask=mask, loss=loss,
            facts=self.facts,
        )  # fmt: skip

    def watch(self, space):
        """For a book that keeps more: the functions of a trainer, before it runs."""

    def close(self):
        self.recorder.close()
        self.log.write_text("".join(json.dumps(row) + "\n" for row in self.rows))


FACTS = {"baseline": "group-mean", "scale": "population-std", "group_size": 8, "beta": 0.04}


def tiny_run(folder, steps, seed, every=4, epochs=2, lr=2.0, book=None):
    """`rlproof.tiny.train`, spelled out so that it can be logged: the same random numbers."""
    book = book or Logbook(folder, every, FACTS)
    rng, prompts = random.Random(seed), (0, 1, 2, 3)
    theta = [[0.0] * tiny.VOCAB for _ in prompts]
    ref = [row[:] for row in theta]
    for _ in range(steps):
        rows, tokens, mask, rewards = tiny.rollout(theta, prompts, 8, 5, rng)
        adv = tiny.group_advantages(rewards, 8)
        book.begin(rewards, adv, 8)
        old, far = tiny.token_logps(theta, rows, tokens), tiny.token_logps(ref, rows, tokens)
        for number in range(epochs):
            new = tiny.token_logps(theta, rows, tokens)
            loss = tiny.grpo_loss(new, old, far, adv, mask)
            slopes = tiny.grpo_grad(theta, rows, tokens, old, far, adv, mask)
            book.update(
                number, new, old, far, mask, loss,
                entropy=fmean(_entropy(row) for row in theta),
                grad_norm=math.hypot(*(g for slope in slopes for g in slope)),
            )  # fmt: skip
            for row, slope in zip(theta, slopes, strict=True):
                for v, g in enumerate(slope):
                    row[v] -= lr * g
    book.close()
    return book, theta


def _entropy(row):
    return -sum(math.exp(x) * x for x in tiny.log_softmax(row))


def broken_run(folder, source, steps, every=4, seed=0, book=None, **settings):
    """A trainer of `trainers`, run with its functions watched. Returns the crash, or None."""
    book = book or Logbook(folder, every, FACTS)
    space: dict = {"__name__": "trainer"}
    exec(compile(source, "trainer.py", "exec"), space)
    advantages, loss, clipped = (
        space[n] for n in ("group_advantages", "grpo_loss", "clip_fraction")
    )
    state: dict = {"number": 0, "pending": None}

    def group_advantages(rewards, group_size, *rest):
        adv = advantages(rewards, group_size, *rest)
        book.begin(rewards, adv, group_size)
        state["number"] = 0
        return adv

    def clip_fraction(new, old, mask, *rest, **named):
        state["pending"] = (new, old, mask)
        return clipped(new, old, mask, *rest, **named)

    def grpo_loss(new, old, ref, adv, mask, **named):
        if state["pending"] is not None:
            now, before, marks = state["pending"]
            state["pending"] = None
            value = loss(now, before, ref, adv, marks, **named)
            book.update(state["number"], now, before, ref, marks, value)
            state["number"] += 1
        return loss(new, old, ref, adv, mask, **named)

    space |= {
        "group_advantages": group_advantages, "clip_fraction": clip_fraction, "grpo_loss": grpo_loss
    }  # fmt: skip
    book.watch(space)
    try:
        space["train"](steps=steps, seed=seed, **settings)
    except ArithmeticError as error:
        return book, error
    finally:
        book.close()
    return book, None
