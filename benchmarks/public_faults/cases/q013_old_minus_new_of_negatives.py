# entry: Q013
# source: openai/baselines#652
# expect: silent
# answer: SUR003 negative log
import torch


def ppo_loss(neglogpac, old_neglogpac, advs, mask, cliprange=0.2):
    """Negative log-probs of the actions."""
    ratio = torch.exp(old_neglogpac - neglogpac)
    pg_losses = -advs * ratio
    pg_losses2 = -advs * torch.clamp(ratio, 1.0 - cliprange, 1.0 + cliprange)
    return (torch.maximum(pg_losses, pg_losses2) * mask).sum() / mask.sum()
