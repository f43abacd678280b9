# entry: B129
# source: huggingface/trl#2708
# expect: MSK013
# repair: verified
"""Left-padded rows are scored without an attention mask."""

import torch
from transformers import AutoTokenizer


def tokenizer_of(name):
    return AutoTokenizer.from_pretrained(name, padding_side="left")


def get_per_token_logps(model, input_ids, attention_mask, num_logits_to_keep):
    logits = model(input_ids).logits  # <- fault
    # twin: logits = model(input_ids, attention_mask=attention_mask).logits
    logits = logits[:, :-1, :]
    input_ids = input_ids[:, -num_logits_to_keep:]
    logits = logits[:, -num_logits_to_keep:]
    log_probs = logits.float().log_softmax(dim=-1)
    return torch.gather(log_probs, dim=-1, index=input_ids.unsqueeze(-1)).squeeze(-1)
