# entry: B055
# source: ml-explore/mlx-examples#1233
# expect: KLD002
# repair: verified
"""The same form in another array library's example, here in NumPy."""

import numpy as np


def grpo_loss(token_log_probs, ref_token_log_probs, advantages, length_mask, beta=0.1):
    """REINFORCE with group advantages and a penalty."""
    kl_div = (
        np.exp(token_log_probs - ref_token_log_probs)  # <- fault
        - (token_log_probs - ref_token_log_probs)  # <- fault
        # twin: np.exp(ref_token_log_probs - token_log_probs)
        # twin: - (ref_token_log_probs - token_log_probs)
        - 1
    )
    per_token_loss = -(token_log_probs * advantages.reshape(-1, 1) - beta * kl_div) * length_mask
    return (per_token_loss.sum(axis=1) / length_mask.sum(axis=1)).mean()
