# entry: B002
# source: StarsfieldAI/R1-V#67
# expect: ADV002
# repair: verified
"""A trainer for a model that sees: generation in a loop over samples, all prompts at once."""

import torch


class GRPOTrainer:
    def __init__(self, model, ref_model, args):
        self.model = model
        self.ref_model = ref_model
        self.num_generations = args.num_generations
        self.beta = args.beta

    def get_logps(self, model, input_ids):
        logits = model(input_ids).logits[:, :-1]
        logps = logits.log_softmax(-1)
        return logps.gather(-1, input_ids[:, 1:].unsqueeze(-1)).squeeze(-1)

    def compute_loss(self, model, inputs):
        prompt_ids = inputs["prompt_ids"]
        prompt_ids = prompt_ids.repeat(self.num_generations, 1)  # <- drop
        # twin: prompt_ids = prompt_ids.repeat_interleave(self.num_generations, dim=0)
        input_ids = model.generate(prompt_ids, do_sample=True, temperature=1.0)
        mask = inputs["mask"]
        rewards = torch.tensor(self.score(input_ids))
        mean = rewards.view(-1, self.num_generations).mean(dim=1)  # <- here
        std = rewards.view(-1, self.num_generations).std(dim=1)
        mean = mean.repeat_interleave(self.num_generations, dim=0)
        std = std.repeat_interleave(self.num_generations, dim=0)
        advantages = (rewards - mean) / (std + 1e-4)
        logps = self.get_logps(model, input_ids)
        with torch.no_grad():
            ref_logps = self.get_logps(self.ref_model, input_ids)
        kl = torch.exp(ref_logps - logps) - (ref_logps - logps) - 1
        per_token = torch.exp(logps - logps.detach()) * advantages.unsqueeze(1)
        per_token = -(per_token - self.beta * kl)
        return ((per_token * mask).sum(dim=1) / mask.sum(dim=1)).mean()
