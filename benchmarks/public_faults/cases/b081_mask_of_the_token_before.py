# entry: B081
# source: Goekdeniz-Guelmez/mlx-lm-lora#80
# expect: any
# repair: verified
"""Log-probs of the completion: targets are tokens[1:], the mask is mask[:-1]."""

import torch


def completion_logps(model, input_ids, completion_mask):
    """Log-probs of completion tokens, 0 elsewhere: (B, T − 1)."""
    logits = model(input_ids).logits[:, :-1]
    logps = torch.log_softmax(logits.float(), dim=-1)
    logps = logps.gather(-1, input_ids[:, 1:].unsqueeze(-1)).squeeze(-1)
    mask = completion_mask[:, :-1]  # <- fault
    # twin: mask = completion_mask[:, 1:]
    return logps * mask  # <- here


def train(model, loader, score):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
    for batch in loader:
        ids = batch["input_ids"]
        advantages = score(ids)
        logps = completion_logps(model, ids, batch["completion_mask"])
        loss = -(torch.exp(logps - logps.detach()) * advantages).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
