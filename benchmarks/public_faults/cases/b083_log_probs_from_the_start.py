# entry: B083
# source: lucidrains/PaLM-rlhf-pytorch#31
# expect: LGP003|MSK009
# repair: verified
"""Log-probs of actions, cut from the wrong end of the sequence."""

import torch


def action_log_probs(model, sequence, attention_mask, num_actions):
    """(B, num_actions): the response is the end of the sequence."""
    logits = model(input_ids=sequence, attention_mask=attention_mask).logits[:, :-1]
    log_probs = torch.log_softmax(logits.float(), dim=-1)
    log_probs = log_probs.gather(-1, sequence[:, 1:].unsqueeze(-1)).squeeze(-1)
    return log_probs[:, :num_actions]  # <- fault
    # twin: return log_probs[:, -num_actions:]
