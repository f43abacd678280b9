# entry: Q025
# source: OpenRLHF/OpenRLHF#181
# expect: silent
# answer: LGP003 shift
import torch


def completion_logps(model, input_ids, attention_mask, loss_mask):
    logits = model(input_ids=input_ids, attention_mask=attention_mask).logits[:, :-1]
    logps = torch.log_softmax(logits.float(), dim=-1)
    logps = logps.gather(-1, input_ids[:, 1:].unsqueeze(-1)).squeeze(-1)
    return logps * loss_mask[:, 1:]
