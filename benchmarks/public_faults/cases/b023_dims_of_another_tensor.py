# entry: B023
# source: yifan123/flow_grpo#244
# expect: ADV012
"""GRPO on images, with the correction for the drift of the means of denoising steps."""

import math

import torch


def step_with_logprob(output, sample, prev_sample, std):
    """One denoising step: its log-prob (B,) and the mean that it was drawn around."""
    prev_mean = sample + output
    log_prob = -((prev_sample.detach() - prev_mean) ** 2) / (2 * std**2) - math.log(std)
    # mean along all but batch dimension
    log_prob = log_prob.mean(dim=tuple(range(1, log_prob.ndim)))
    return log_prob, prev_mean


def compute_log_prob(model, sample, std=0.7):
    output = model(sample["latents"], sample["timesteps"])
    log_prob, prev_mean = step_with_logprob(
        output, sample["latents"], sample["next_latents"], std
    )
    return log_prob, prev_mean


def guarded_loss(log_prob, old_log_prob, bias, advantages, clip_range=0.2):
    """log-probs, bias and advantages (B,): one of each for a sample."""
    ratio = torch.exp(log_prob - old_log_prob + bias)
    clipped = torch.clamp(ratio, 1 - clip_range, 1 + clip_range)
    return torch.maximum(-advantages * ratio, -advantages * clipped).mean()


def train_epoch(model, optimizer, samples):
    for sample in samples:
        log_prob, prev_mean = compute_log_prob(model, sample)
        moved = (prev_mean - sample["prev_mean"]).pow(2)
        bias = moved.mean(dim=tuple(range(1, log_prob.ndim)))  # <- fault
        # twin: bias = moved.mean(dim=tuple(range(1, moved.ndim)))
        loss = guarded_loss(log_prob, sample["log_prob"], bias, sample["advantages"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
