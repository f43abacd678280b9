# entry: B091
# source: GMISWE/tinker-cloud#26
# expect: LGP008
# repair: verified
"""Training logits are divided by 0.7, though requests are sampled at another temperature."""

import torch


def target_logprobs(model, input_ids, attention_mask, temperature):
    """Log-probs at the sampling temperature."""
    logits = model(input_ids=input_ids, attention_mask=attention_mask).logits[:, :-1]
    logits = logits / 0.7  # <- fault
    # twin: logits = logits / temperature
    logprobs = torch.log_softmax(logits.float(), dim=-1)  # <- here
    return logprobs.gather(-1, input_ids[:, 1:].unsqueeze(-1)).squeeze(-1)
