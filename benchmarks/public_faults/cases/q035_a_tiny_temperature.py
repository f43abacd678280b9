# entry: Q035
# source: huggingface/trl#3640
# expect: silent
# answer: LGP001 no regime to train in
import torch


def token_logps(logits, tokens, temperature=1e-3):
    """Log-probs at the sampling temperature, which is close to greedy here."""
    logps = torch.log_softmax(logits / temperature, dim=-1)
    return logps.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
