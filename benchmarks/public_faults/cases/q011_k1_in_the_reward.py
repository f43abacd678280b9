# entry: Q011
# source: huggingface/trl#5889
# expect: silent
# answer: KLD004 As a reward penalty
import torch


def rloo_advantages(rewards, logps, ref_logps, mask, num_generations, beta=0.05):
    """Leave-one-out over rewards less the KL of each sequence."""
    kl = ((logps - ref_logps) * mask).sum(-1)
    grouped = (rewards - beta * kl.detach()).view(-1, num_generations)
    baseline = (grouped.sum(1, keepdim=True) - grouped) / (num_generations - 1)
    return (grouped - baseline).view(-1)
