# entry: B047
# source: huggingface/trl#3194
# expect: LOP016
"""GRPO on top of a LoRA that was fine-tuned before; the adapter is switched off for the KL."""

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

BASE, SFT_LORA = "models/base", "outputs/sft-lora"


def token_logps(model, ids):
    logits = model(ids).logits[:, :-1, :]
    return torch.log_softmax(logits, -1).gather(2, ids[:, 1:].unsqueeze(-1)).squeeze(-1)


def train(batches, optimizer, epsilon=0.2, beta=0.04):
    model = PeftModel.from_pretrained(
        AutoModelForCausalLM.from_pretrained(BASE), SFT_LORA, is_trainable=True
    )
    # twin: ref = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(BASE), SFT_LORA)
    for batch in batches:
        ids, mask = batch["ids"], batch["mask"]
        # the adapter can be disabled to revert to the initial model
        # twin: with torch.no_grad():
        with torch.no_grad(), model.disable_adapter():  # <- drop
            ref_logps = token_logps(model, ids)  # <- fault
            # twin: ref_logps = token_logps(ref, ids)
        logps = token_logps(model, ids)
        ratio = torch.exp(logps - logps.detach())
        adv = batch["advantages"].unsqueeze(1)
        gain = torch.min(ratio * adv, torch.clamp(ratio, 1 - epsilon, 1 + epsilon) * adv)
        gap = ref_logps - logps
        loss = ((-gain + beta * (torch.exp(gap) - gap - 1)) * mask).sum(1) / mask.sum(1)
        loss.mean().backward()
        optimizer.step()
        optimizer.zero_grad()
