# entry: B078
# source: modelscope/ms-swift#3069
# expect: LGP003|MSK009
# repair: verified
"""Right-padded rows of different prompt lengths; one number of logits is kept for all."""

import torch


def get_per_token_logps(model, input_ids, attention_mask, prompt_lengths, logits_to_keep):
    """Log-probs of the completion tokens (B, K)."""
    logits = model(input_ids=input_ids, attention_mask=attention_mask).logits[:, :-1]
    targets = input_ids[:, 1:]
    logps = torch.log_softmax(logits.float(), dim=-1)
    logps = logps.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    start = int(prompt_lengths.max()) - 1  # <- fault
    return logps[:, start : start + logits_to_keep]  # <- fault
    # twin: columns = prompt_lengths[:, None] - 1 + torch.arange(logits_to_keep)
    # twin: return logps.gather(1, columns.clamp(max=logps.shape[1] - 1))
