# entry: Q010
# source: volcengine/verl#2953
# expect: silent
# answer: KLD010 This is how GRPO was published
import torch


def loss_of(log_prob, old_log_prob, ref_log_prob, advantages, response_mask, kl_loss_coef=0.001):
    ratio = torch.exp(log_prob - old_log_prob)
    pg = torch.maximum(-advantages * ratio, -advantages * ratio.clamp(0.8, 1.2))
    kl = ref_log_prob - log_prob
    kld = (torch.exp(kl) - kl - 1).clamp(-10, 10)
    return ((pg + kl_loss_coef * kld) * response_mask).sum() / response_mask.sum()
