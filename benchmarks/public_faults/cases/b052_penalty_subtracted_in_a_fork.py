# entry: B052
# source: qiancheng0/ToolRL#52
# expect: KLD001
# repair: verified
"""A worker's update: settings in a config object, losses in place."""

import torch


class DataParallelPPOActor:
    def __init__(self, config, actor_module, actor_optimizer):
        self.config = config
        self.actor_module = actor_module
        self.actor_optimizer = actor_optimizer

    def update_policy(self, dataloader):
        for data in dataloader:
            response_mask = data["response_mask"]
            old_log_prob = data["old_log_probs"]
            advantages = data["advantages"]
            log_prob = self.actor_module(data["input_ids"])
            ratio = torch.exp(log_prob - old_log_prob)
            clipped = torch.clamp(ratio, 1 - self.config.clip_ratio, 1 + self.config.clip_ratio)
            losses = torch.max(-advantages * ratio, -advantages * clipped)
            policy_loss = (losses * response_mask).sum() / response_mask.sum()
            ref_log_prob = data["ref_log_prob"]
            kld = torch.exp(ref_log_prob - log_prob) - (ref_log_prob - log_prob) - 1
            kl_loss = (kld * response_mask).sum() / response_mask.sum()
            policy_loss = policy_loss - kl_loss * self.config.kl_loss_coef  # <- fault
            # twin: policy_loss = policy_loss + kl_loss * self.config.kl_loss_coef
            self.actor_optimizer.zero_grad()
            policy_loss.backward()
            self.actor_optimizer.step()
