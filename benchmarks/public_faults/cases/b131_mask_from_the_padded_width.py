# entry: B131
# source: billy-enrizky/openbrowser-ai#32
# expect: any
# repair: verified
"""Rows of a padded tensor all get a mask of its width."""

import torch


def attention_of(rows):
    mask = torch.zeros(len(rows), max(len(r) for r in rows))
    for k, row in enumerate(rows):
        mask[k, : len(row)] = 1
    return mask


def token_logps(model, input_ids, lengths):
    attention_mask = attention_of(list(input_ids))  # <- fault
    # twin: attention_mask = attention_of([row[:n] for row, n in zip(input_ids, lengths)])
    logits = model(input_ids=input_ids, attention_mask=attention_mask).logits[:, :-1]
    logps = torch.log_softmax(logits.float(), dim=-1)
    return logps.gather(-1, input_ids[:, 1:].unsqueeze(-1)).squeeze(-1)
