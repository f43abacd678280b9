# entry: B046
# source: huggingface/trl#6700
# expect: LOP006
# repair: verified
"""A script of the same kind: everything is frozen before the optimizer takes what can be trained."""

import copy

import torch


def token_logps(model, ids):
    logps = torch.log_softmax(model(ids).logits[:, :-1].float(), dim=-1)
    return logps.gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(-1)


def train(model, loader, score):
    reference = model  # <- fault
    # twin: reference = copy.deepcopy(model)
    for parameter in reference.parameters():
        parameter.requires_grad = False  # <- here
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-5)
    for batch in loader:
        ids = model.generate(batch, do_sample=True, temperature=1.0)
        advantages = score(ids)
        logps = token_logps(model, ids)
        loss = -(torch.exp(logps - logps.detach()) * advantages).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # <- here
