# entry: B092
# source: unslothai/unsloth-zoo#832
# expect: LGP001
# repair: verified
"""A port to another array library forgot the temperature."""

import numpy as np


def token_logps(logits, completion_ids, temperature=1.0):  # <- here
    """Log-probs of the completion at the sampling temperature."""
    logits = np.asarray(logits, dtype=np.float64)  # <- here
    # twin: logits = logits / temperature
    top = logits.max(axis=-1, keepdims=True)
    log_z = top + np.log(np.exp(logits - top).sum(axis=-1, keepdims=True))
    return np.take_along_axis(logits - log_z, completion_ids[..., None], axis=-1)[..., 0]
