# entry: B037
# source: redai-studio/Relax#23
# expect: SUR007
# repair: verified
"""Launch settings and the loss they go to."""

import argparse

import torch


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--eps-clip", type=float, default=3.0)  # <- fault
    # twin: parser.add_argument("--eps-clip", type=float, default=0.2)
    parser.add_argument("--eps-clip-high", type=float, default=0.28)
    return parser.parse_args()


def compute_policy_loss(log_probs, old_log_probs, advantages, mask, eps_clip, eps_clip_high):
    ratio = (log_probs - old_log_probs).exp()
    losses1 = -ratio * advantages
    losses2 = -ratio.clamp(1 - eps_clip, 1 + eps_clip_high) * advantages  # <- here
    return (torch.max(losses1, losses2) * mask).sum() / mask.sum()


def train(actor, batches, args):
    args = options()
    for batch in batches:
        log_probs = actor(batch)
        loss = compute_policy_loss(
            log_probs,
            batch["old_log_probs"],
            batch["advantages"],
            batch["mask"],
            args.eps_clip,
            args.eps_clip_high,
        )
        loss.backward()
        actor.optimizer.step()
        actor.optimizer.zero_grad()
