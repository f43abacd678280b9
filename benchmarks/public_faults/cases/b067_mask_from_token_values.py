# entry: B067
# source: huggingface/trl#4970
# expect: MSK004
# repair: verified
"""A mask from ids, for a tokenizer whose pad token is its end token."""

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("Qwen/Qwen2.5-0.5B-Instruct")
tokenizer.pad_token = tokenizer.eos_token


def completion_logps(model, ids):
    logps = torch.log_softmax(model(ids).logits[:, :-1].float(), dim=-1)
    return logps.gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(-1)


def train(prompts, score, steps=100):
    model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B-Instruct")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
    for _ in range(steps):
        ids = model.generate(prompts, do_sample=True, temperature=1.0)
        advantages = score(ids)
        completion_mask = (ids[:, 1:] != tokenizer.pad_token_id).int()  # <- fault
        # twin: is_eos = (ids[:, 1:] == tokenizer.eos_token_id).int()
        # twin: completion_mask = (is_eos.cumsum(dim=1) - is_eos == 0).int()
        logps = completion_logps(model, ids)
        per_token = torch.exp(logps - logps.detach()) * advantages
        loss = -(per_token * completion_mask).sum() / completion_mask.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
