# entry: B097
# source: PrimeIntellect-ai/prime-rl#2358
# expect: any
# missed: needs a run: nothing in the file says that there are several ranks, and one alone is right
"""Each rank divides by its own tokens, and the wrapper averages gradients."""

import torch
import torch.distributed as dist


def loss_fn(logprobs, old_logprobs, advantages, loss_mask, scale):
    ratio = torch.exp(logprobs - old_logprobs)
    adv = advantages.unsqueeze(1)
    losses = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv)
    return (losses * loss_mask).sum() / scale


def train_step(model, batch, optimizer):
    mask = batch["loss_mask"]
    scale = mask.sum().clamp(min=1)  # <- fault
    # twin: scale = mask.sum().float()
    # twin: dist.all_reduce(scale)
    # twin: scale = scale / dist.get_world_size()
    logprobs = model(batch["input_ids"])
    loss = loss_fn(logprobs, batch["old_logprobs"], batch["advantages"], mask, scale)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
