"""The loss of hidden states under DAPO, fused and with the logits held: the same numbers."""

import torch

from rlproof.space.published import OBJECTIVES
from rlproof.train.fused import FusedBatch, fused_loss, plain_loss

torch.manual_seed(0)
hidden = torch.randn(4, 6, 32, dtype=torch.float64)  # (B, T, H): what each token was drawn from
head = torch.nn.Linear(32, 1000, bias=False).double()
tokens = torch.randint(1000, (4, 6))
old = head(hidden).log_softmax(-1).gather(-1, tokens[..., None])[..., 0].detach()
batch = FusedBatch(
    mask=torch.ones(4, 6),
    advantages=torch.tensor([1.0, -1.0, 0.5, -0.5]),
    old=old + 0.2 * torch.randn(4, 6),
)
dapo = OBJECTIVES["dapo"].objective

fused = fused_loss(hidden, head.weight, tokens, batch, dapo)
fused.loss.backward()
gradient, head.weight.grad = head.weight.grad, None

plain = plain_loss(head, hidden, tokens, batch, dapo)
plain.loss.backward()

print(f"loss {fused.loss.item():.6f}, with the logits held {plain.loss.item():.6f}")
gap = (gradient - head.weight.grad).abs().max() / gradient.abs().max()
print("same gradient" if gap < 1e-12 else f"another gradient, by {gap:.1e}")
print(f"{fused.backward_rows} of {fused.rows} tokens have a gradient; the clip stopped the others")
