# entry: B066
# source: bingreeky/MemGen#33
# expect: MSK004
# repair: verified
"""Completions are filled up with the end token; the mask compares with the pad token."""

import torch


def token_logps(model, ids):
    logps = torch.log_softmax(model(ids).logits[:, :-1].float(), dim=-1)
    return logps.gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(-1)


def train(model, tokenizer, loader, score):
    tokenizer.pad_token = tokenizer.eos_token
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
    for batch in loader:
        ids = model.generate(batch, do_sample=True, temperature=1.0)
        advantages = score(ids)
        mask = (ids[:, 1:] != tokenizer.pad_token_id).float()  # <- fault
        # twin: ended = (ids[:, 1:] == tokenizer.eos_token_id).int()
        # twin: mask = (ended.cumsum(dim=1) - ended == 0).float()
        logps = token_logps(model, ids)
        loss = -(torch.exp(logps - logps.detach()) * advantages * mask).sum() / mask.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
