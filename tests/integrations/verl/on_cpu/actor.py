"""A tiny model is trained for three batches.

    python actor.py FOLDER LOSS_MODE [noisy-old]

Prints a digest of the weights. FOLDER/metrics.jsonl is written by verl's `Tracking`.
"""

import os
import sys

folder, mode, fault = sys.argv[1], sys.argv[2], sys.argv[3:]
os.environ["VERL_FILE_LOGGER_PATH"] = f"{folder}/metrics.jsonl"

import tiny  # noqa: E402
import torch  # noqa: E402
from verl.utils.tracking import Tracking  # noqa: E402


def advantages_of(rewards, mask):
    """Those of the groups, over their standard deviation."""
    by_group = rewards.view(-1, tiny.G)
    centred = by_group - by_group.mean(1, keepdim=True)
    return (centred / (by_group.std(1, keepdim=True) + 1e-6)).flatten()[:, None] * mask


def main():
    tiny.start()
    tiny.model(folder)
    training, source = tiny.worker(folder, mode), torch.Generator().manual_seed(1)
    tracking = Tracking("project", "experiment", ["file"])
    for step in range(3):
        tensors, rewards = tiny.rollout(source)
        old = tiny.scored(training, tensors)
        if "noisy-old" in fault:
            old += 0.3 * torch.randn(old.shape, generator=source)
        advantages = advantages_of(rewards, tensors["response_mask"])
        given = {**tensors, "old_log_probs": old, "advantages": advantages}
        metrics = tiny.update(training, given)
        means = {key: sum(values) / len(values) for key, values in metrics.items() if "pg" in key}
        tracking.log(means, step)
    tracking.finish()
    print("weights", tiny.digest(training))


main()
