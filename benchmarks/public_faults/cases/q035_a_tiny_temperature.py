# entry: Q035
# source: huggingface/trl#3640
# expect: silent
# answer: LGP008 all of it on the largest logit
import torch


def token_logps(model, input_ids, attention_mask, logits_to_keep, temperature=1e-6):
    logits = model(input_ids=input_ids, attention_mask=attention_mask).logits[:, :-1]
    logits = logits[:, -logits_to_keep:].float() / temperature
    targets = input_ids[:, -logits_to_keep:].unsqueeze(-1)
    return torch.log_softmax(logits, dim=-1).gather(-1, targets).squeeze(-1)
