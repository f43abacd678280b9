"""Accuracy on the sums that were held out: before training, along the way, and after.

    python evaluate.py [--start start] [--run out] [--svg curve.svg]

The likeliest token is taken at every place, and the answer is right if it is the sum and nothing
else.
"""

import argparse
import json
from itertools import pairwise
from pathlib import Path

import torch
from task import exact, sums
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from rlproof.train.plot import Curve
from rlproof.train.rollout.generate import generate
from rlproof.train.sampling import Sampling
from rlproof.train.svg import svg

GREEDY = Sampling(temperature=0.0, max_tokens=4)


def accuracy(folder, pairs):
    """The share of sums that the model in a folder gets right."""
    model = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    end = tokenizer.eos_token_id
    drawn = generate(
        model, [tokenizer(prompt)["input_ids"] for prompt, _ in pairs], GREEDY,
        eos=[end], pad=end, generator=torch.Generator(),
    )
    texts = tokenizer.batch_decode(drawn.completions(), skip_special_tokens=True)
    return sum(exact(texts, [answer for _, answer in pairs])) / len(pairs)


def folders(start, run):
    """(step, folder) of the model before training and of every checkpoint."""
    found = sorted((run / "checkpoints").glob("step-*"))
    return [(0, start)] + [(int(path.name[5:]), path / "model") for path in found]


def drawn(measured, run):
    """The curve as SVG: held-out accuracy, straight between checkpoints, and the reward."""
    between = [share for _, share in measured[:1]]
    for (low, before), (high, after) in pairwise(measured):
        slope = (after - before) / (high - low)
        between += [before + slope * n for n in range(1, high - low + 1)]
    lines = (run / "metrics.jsonl").read_text().splitlines()
    rewards = [json.loads(line)["reward"] for line in lines][: measured[-1][0]]
    curves = [
        Curve("right answers to held-out sums", "greedy", tuple(between), percent=True, top=1.0),
        Curve("reward", "of the completions sampled", tuple(rewards), top=1.0),
    ]
    summary = f"Held-out accuracy goes from {between[0]:.1%} to {between[-1]:.1%}."
    return svg(curves, "GRPO on sums", summary)


def main():
    here = Path(__file__).parent
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--start", type=Path, default=here / "start")
    options.add_argument("--run", type=Path, default=here / "out")
    options.add_argument("--svg", type=Path)
    given = options.parse_args()
    logging.disable_progress_bar()

    trained, held_out = sums()
    measured = []
    print("step  held out  shown solved")
    for step, folder in folders(given.start, given.run):
        shares = [accuracy(folder, pairs) for pairs in (held_out, trained[: len(held_out)])]
        print("{:4}    {:6.1%}      {:6.1%}".format(step, *shares), flush=True)
        measured.append((step, shares[0]))
    if given.svg and len(measured) > 1:
        given.svg.write_text(drawn(measured, given.run), encoding="utf-8")


if __name__ == "__main__":
    main()
