# entry: B087
# source: huggingface/trl#3029
# expect: LGP001
# repair: verified
"""A trainer samples at a temperature and scores at 1."""

from dataclasses import dataclass

import torch


@dataclass
class GRPOConfig:
    temperature: float = 0.9
    max_completion_length: int = 256


class GRPOTrainer:
    def __init__(self, model, args: GRPOConfig):
        self.model = model
        self.args = args

    def _get_per_token_logps(self, model, input_ids, attention_mask, logits_to_keep):
        """Log-probs of the last tokens."""
        logits = model(input_ids=input_ids, attention_mask=attention_mask).logits
        logits = logits[:, :-1, :][:, -logits_to_keep:]  # <- here
        # twin: logits = logits / self.args.temperature
        index = input_ids[:, -logits_to_keep:]
        logps = torch.log_softmax(logits.float(), dim=-1)  # <- here
        return logps.gather(-1, index.unsqueeze(-1)).squeeze(-1)  # <- here

    def sample(self, prompt_ids):
        return self.model.generate(prompt_ids, do_sample=True, temperature=self.args.temperature)
