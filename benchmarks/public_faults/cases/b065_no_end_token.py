# entry: B065
# source: volcengine/verl#3805
# expect: MSK005
# repair: verified
"""Response mask from the first end token."""

import torch


def get_response_mask(response_id, eos_token, dtype=torch.int64):
    """1 up to and including the first end token."""
    eos = response_id.eq(eos_token).int()
    first = eos.argmax(dim=1, keepdim=True)
    # twin: first = torch.where(eos.any(dim=1, keepdim=True), first, response_id.shape[1])
    positions = torch.arange(response_id.shape[1])[None, :]
    return (positions <= first).to(dtype)  # <- here
