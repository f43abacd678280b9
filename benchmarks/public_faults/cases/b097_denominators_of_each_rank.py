# entry: B097
# source: PrimeIntellect-ai/prime-rl#2358
# expect: AGG003
"""A trainer on several GPUs: losses are summed over tokens and divided by one scale."""

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel


def loss_fn(logprobs, old_logprobs, advantages, loss_mask, loss_scale):
    ratio = torch.exp(logprobs - old_logprobs)
    adv = advantages.unsqueeze(1)
    losses = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv)
    return (losses * loss_mask).sum() / loss_scale


def train(model, loader, optimizer):
    dist.init_process_group("nccl")
    model = FullyShardedDataParallel(model)
    for micro_batches in loader:
        # Normalize by the local number of unmasked tokens in the batch
        loss_scale = sum(mb["loss_mask"].sum() for mb in micro_batches)  # <- fault
        # twin: loss_scale = sum(mb["loss_mask"].sum() for mb in micro_batches)
        # twin: dist.all_reduce(loss_scale)
        # twin: loss_scale = loss_scale / dist.get_world_size()
        loss_scale = max(loss_scale, 1)  # <- drop
        optimizer.zero_grad()
        for mb in micro_batches:
            logprobs = model(mb["input_ids"])
            loss = loss_fn(
                logprobs, mb["old_logprobs"], mb["advantages"], mb["loss_mask"], loss_scale
            )
            loss.backward()
        optimizer.step()
