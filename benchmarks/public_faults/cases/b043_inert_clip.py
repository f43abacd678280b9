# entry: B043
# source: xiaomi-research/time-r1#20
# expect: LOP001
# repair: verified
"""A video trainer: the clipped branch, with the current log-probs as the old ones."""

import torch


def token_logps(model, ids):
    logps = torch.log_softmax(model(ids).logits[:, :-1].float(), dim=-1)
    return logps.gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(-1)


def train(model, loader, score, num_iterations=3, eps=0.2):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
    for prompts in loader:
        ids = model.generate(prompts, do_sample=True, temperature=1.0)
        advantages = score(ids)
        # twin: old_logps = token_logps(model, ids).detach()
        for _ in range(num_iterations):
            logps = token_logps(model, ids)
            old_logps = logps.detach()  # <- fault
            ratio = torch.exp(logps - old_logps)
            clipped = ratio.clamp(1 - eps, 1 + eps)
            loss = -torch.min(ratio * advantages, clipped * advantages).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
