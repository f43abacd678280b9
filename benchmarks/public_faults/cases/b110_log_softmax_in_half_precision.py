# entry: B110
# source: OpenRLHF/OpenRLHF#634
# expect: LGP005
# repair: verified
"""Log-probs from bfloat16 logits."""

import torch


def log_probs_from_logits(logits, labels):
    logits = logits.to(torch.bfloat16)  # <- fault
    # twin: logits = logits.to(torch.float32)
    log_probs = torch.log_softmax(logits, dim=-1)  # <- here
    return log_probs.gather(dim=-1, index=labels.unsqueeze(-1)).squeeze(-1)  # <- here
