# entry: Q023
# source: volcengine/verl#514
# expect: silent
# answer: MET002 entropy
import torch


def loss_of(log_prob, old_log_prob, advantages, response_mask, entropy, entropy_coeff=0.001):
    ratio = torch.exp(log_prob - old_log_prob)
    pg = torch.maximum(-advantages * ratio, -advantages * ratio.clamp(0.8, 1.2))
    pg_loss = (pg * response_mask).sum() / response_mask.sum()
    entropy_loss = (entropy * response_mask).sum() / response_mask.sum()
    return pg_loss - entropy_coeff * entropy_loss
