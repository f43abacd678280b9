# entry: B084
# source: CarperAI/trlx#582
# expect: any
# repair: verified
"""The mask of log-ratios is cut in two ways in one step."""

import torch


def token_logprobs(model, tokens, attention_mask):
    logits = model(input_ids=tokens, attention_mask=attention_mask).logits[:, :-1]
    logprobs = torch.log_softmax(logits.float(), dim=-1)
    return logprobs.gather(-1, tokens[:, 1:].unsqueeze(-1)).squeeze(-1)


def step(model, optimizer, batch, cliprange=0.2):
    tokens, attention_mask = batch["tokens"], batch["attention_mask"]
    logprobs = token_logprobs(model, tokens, attention_mask)
    mask = batch["response_mask"]
    log_ratio = (logprobs - batch["old_logprobs"]) * mask[:, :-1]  # <- fault
    # twin: log_ratio = (logprobs - batch["old_logprobs"]) * mask[:, 1:]
    ratio = torch.exp(log_ratio)
    adv = batch["advantages"][:, None]
    loss = torch.max(-adv * ratio, -adv * ratio.clamp(1 - cliprange, 1 + cliprange))
    loss = (loss * mask[:, 1:]).sum() / mask[:, 1:].sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
