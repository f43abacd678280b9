"""Healthy functions that read token log-probs off a model, in the styles people write.

Each entry: the source, and coordinates that the report must have among others.
"""

COMPLETION = {"pairing": "next token", "tokens": "completion"}
ALL = {"pairing": "next token", "tokens": "all"}

HEALTHY = {
    "kept logits": (
        """
def get_per_token_logps(model, input_ids, attention_mask, logits_to_keep):
    out = model(input_ids=input_ids, attention_mask=attention_mask,
                logits_to_keep=logits_to_keep + 1)
    logits = out.logits[:, :-1, :]
    targets = input_ids[:, -logits_to_keep:]
    logits = logits[:, -logits_to_keep:]
    chosen = torch.gather(logits, -1, targets.unsqueeze(-1)).squeeze(-1)
    return chosen - torch.logsumexp(logits, dim=-1)
""",
        {**COMPLETION, "attention": "masked"},
    ),
    "row by row": (
        """
def _get_per_token_logps(model, input_ids, num_logits_to_keep):
    logits = model(input_ids).logits
    logits, ids = logits[:, :-1], input_ids[:, 1:]
    rows = []
    for row_logits, row_ids in zip(logits, ids):
        row = row_logits.log_softmax(dim=-1)
        rows.append(torch.gather(row, 1, row_ids.unsqueeze(1)).squeeze(1))
    return torch.stack(rows)[:, -num_logits_to_keep:]
""",
        COMPLETION,
    ),
    "chunks and entropies": (
        """
def selective_log_softmax(logits, index):
    picked = logits.gather(-1, index.unsqueeze(-1)).squeeze(-1)
    return picked - torch.stack([torch.logsumexp(row, -1) for row in logits])


def per_token_logps_and_entropies(model, input_ids, attention_mask, logits_to_keep,
                                  batch_size=None, compute_entropy=False, temperature=1.0):
    batch_size = batch_size or input_ids.size(0)
    all_logps, all_entropies = [], []
    for start in range(0, input_ids.size(0), batch_size):
        ids = input_ids[start : start + batch_size]
        mask = attention_mask[start : start + batch_size]
        logits = model(input_ids=ids, attention_mask=mask).logits
        logits = logits[:, :-1, :][:, -logits_to_keep:, :] / temperature
        all_logps.append(selective_log_softmax(logits, ids[:, -logits_to_keep:]))
        if compute_entropy:
            p = logits.softmax(-1)
            all_entropies.append(torch.logsumexp(logits, -1) - (p * logits).sum(-1))
    return torch.cat(all_logps), torch.cat(all_entropies) if compute_entropy else None
""",
        {**COMPLETION, "temperature": "applied", "attention": "masked"},
    ),
    "required chunk size": (
        """
def compute_logprobs(policy, tokens, attention_mask, micro_batch_size):
    pieces = []
    for ids, mask in zip(tokens.split(micro_batch_size), attention_mask.split(micro_batch_size)):
        logits = policy(ids, attention_mask=mask)["logits"].float()
        lp = F.log_softmax(logits[:, :-1], dim=-1)
        pieces.append(lp.gather(2, ids[:, 1:, None])[..., 0])
    return torch.cat(pieces, dim=0)
""",
        ALL,
    ),
    "prompt and completion": (
        """
def completion_logprobs(model, prompt_ids, completion_ids, prompt_mask, completion_mask):
    ids = torch.cat([prompt_ids, completion_ids], dim=1)
    mask = torch.cat([prompt_mask, completion_mask], dim=1)
    logits = model(ids, attention_mask=mask).logits
    width = completion_ids.shape[1]
    logits = logits[:, -width - 1 : -1]
    return torch.log_softmax(logits, -1).gather(-1, completion_ids.unsqueeze(-1)).squeeze(-1)
""",
        {**COMPLETION, "attention": "masked"},
    ),
    "prompt length": (
        """
def compute_log_probs(policy, tokens, prompt_len):
    logits = policy(tokens).logits[:, prompt_len - 1 : -1]
    return logits.log_softmax(-1).gather(2, tokens[:, prompt_len:, None]).squeeze(2)
""",
        COMPLETION,
    ),
    "one sequence": (
        """
def sequence_logps(model, ids, prompt_len):
    logits = model(ids.unsqueeze(0)).logits[0]
    logps = torch.log_softmax(logits, dim=-1)
    return logps[prompt_len - 1 : -1].gather(1, ids[prompt_len:].unsqueeze(1)).squeeze(1)
""",
        COMPLETION,
    ),
    "a list of ids": (
        """
def token_logprobs(model, prompt_ids, completion_ids):
    ids = torch.tensor([prompt_ids + completion_ids], device=model.device)
    logits = model(ids).logits[0, :-1]
    logps = torch.log_softmax(logits, dim=-1)
    start = len(prompt_ids) - 1
    return torch.stack([logps[start + i, t] for i, t in enumerate(completion_ids)])
""",
        COMPLETION,
    ),
    "labels shifted by the caller": (
        """
def get_response_log_probs(model, input_ids, labels, return_token_entropy=False):
    logits = model(input_ids).logits
    logps = F.log_softmax(logits, dim=-1)
    found = {"log_probs": torch.gather(logps, -1, labels.unsqueeze(-1)).squeeze(-1)}
    if return_token_entropy:
        found["token_entropy"] = -(logps.exp() * logps).sum(-1)
    return found
""",
        {"pairing": "same slot"},
    ),
    "labels shifted here": (
        """
def batch_logps(model, input_ids, labels):
    logits = model(input_ids).logits
    flat = F.cross_entropy(logits[:, :-1].reshape(-1, logits.size(-1)),
                           labels[:, 1:].reshape(-1), reduction="none")
    return -flat.view(input_ids.size(0), -1)
""",
        {"pairing": "next token"},
    ),
    "number of actions": (
        """
def actor_log_probs(actor, sequences, num_actions, attention_mask):
    position_ids = attention_mask.long().cumsum(-1) - 1
    position_ids.masked_fill_(attention_mask == 0, 1)
    output = actor(sequences, attention_mask=attention_mask, position_ids=position_ids)
    logits = output["logits"].to(torch.float32)
    rolled = torch.roll(sequences, shifts=-1, dims=1)
    logps = F.log_softmax(logits, dim=-1).gather(-1, rolled.unsqueeze(-1)).squeeze(-1)
    return logps[:, :-1][:, -num_actions:]
""",
        {**COMPLETION, "attention": "masked"},
    ),
    "batch of tensors": (
        """
def compute_log_prob(actor, micro_batch, temperature):
    response = micro_batch["responses"]
    width = response.size(-1)
    logits = actor(input_ids=micro_batch["input_ids"],
                   attention_mask=micro_batch["attention_mask"],
                   position_ids=micro_batch["position_ids"], use_cache=False).logits
    logits.div_(temperature)
    logits = logits[:, -width - 1 : -1, :]
    entropy = torch.distributions.Categorical(logits=logits).entropy()
    logps = torch.log_softmax(logits, -1).gather(-1, response.unsqueeze(-1)).squeeze(-1)
    return entropy, logps
""",
        {**COMPLETION, "temperature": "applied", "attention": "masked"},
    ),
    "spread batch": (
        """
def get_logps(model, inputs):
    logits = model(**inputs).logits[:, :-1]
    ids = inputs["input_ids"][:, 1:]
    return torch.log_softmax(logits.float(), -1).gather(2, ids.unsqueeze(2)).squeeze(2)
""",
        ALL,
    ),
    "zero in front": (
        """
def token_logps(model, input_ids, attention_mask):
    logits = model(input_ids, attention_mask=attention_mask).logits
    lp = torch.log_softmax(logits[:, :-1], -1).gather(2, input_ids[:, 1:, None]).squeeze(2)
    return F.pad(lp, (1, 0), value=0.0)
""",
        ALL,
    ),
    "masked": (
        """
def masked_logps(model, input_ids, attention_mask, completion_mask):
    logits = model(input_ids=input_ids, attention_mask=attention_mask).logits[:, :-1]
    lp = logits.log_softmax(-1).gather(-1, input_ids[:, 1:].unsqueeze(-1)).squeeze(-1)
    return lp * completion_mask[:, 1:]
""",
        COMPLETION,
    ),
    "sum of a completion": (
        """
def sequence_log_prob(model, input_ids, attention_mask, response_mask):
    logits = model(input_ids, attention_mask).logits
    lp = torch.log_softmax(logits, -1)[:, :-1]
    lp = lp.gather(-1, input_ids[:, 1:].unsqueeze(-1)).squeeze(-1)
    return (lp * response_mask[:, 1:]).sum(-1)
""",
        {**COMPLETION, "reduction": "sum", "padding": "left out"},
    ),
    "mean of a completion": (
        """
def avg_logprob(model, prompt_ids, completion_ids, completion_mask):
    ids = torch.cat((prompt_ids, completion_ids), 1)
    logits = model(ids).logits[:, prompt_ids.size(1) - 1 : -1]
    lp = logits.log_softmax(-1).gather(-1, completion_ids[..., None])[..., 0]
    return (lp * completion_mask).sum(1) / completion_mask.sum(1)
""",
        {**COMPLETION, "reduction": "mean", "padding": "left out"},
    ),
    "sum of whole texts": (
        """
def text_log_likelihood(model, input_ids, attention_mask):
    logits = model(input_ids=input_ids, attention_mask=attention_mask).logits[:, :-1]
    lp = logits.log_softmax(-1).gather(-1, input_ids[:, 1:, None])[..., 0]
    return (lp * attention_mask[:, 1:]).sum(1)
""",
        {**ALL, "reduction": "sum", "padding": "left out"},
    ),
    "negative": (
        """
def completion_nll(model, ids, prompt_length):
    logits = model(ids).logits[:, :-1]
    nll = F.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none")
    return nll[:, prompt_length - 1 :]


def nlls(model, ids, prompt_length):
    return completion_nll(model, ids, prompt_length)
""",
        {**COMPLETION, "sign": "negative"},
    ),
    "no gradient for the reference": (
        """
@torch.no_grad()
def reference_logps(ref_model, sequence_ids, attention_mask):
    position_ids = attention_mask.long().cumsum(dim=-1) - 1
    position_ids.masked_fill_(mask=(attention_mask == 0), value=1)
    output = ref_model.forward(input_ids=sequence_ids, attention_mask=attention_mask,
                               position_ids=position_ids, use_cache=False)
    logits = output["logits"][:, :-1].to(torch.float32)
    return F.log_softmax(logits, dim=-1).gather(
        dim=-1, index=sequence_ids[:, 1:].unsqueeze(-1)).squeeze(-1)
""",
        ALL,
    ),
    "unwrapped": (
        """
def policy_logps(policy, input_ids, attention_mask, temperature=0.7):
    inner = policy.module if hasattr(policy, "module") else policy
    was_training = inner.training
    inner.eval()
    hidden = inner.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
    logits = inner.lm_head(hidden)[:, :-1] / (temperature + 1e-7)
    inner.train(was_training)
    return torch.log_softmax(logits, -1).gather(2, input_ids[:, 1:].unsqueeze(2)).squeeze(2)
""",
        {**ALL, "temperature": "applied"},
    ),
    "padding by its id": (
        """
def response_logps(model, query_responses, context_length, pad_token_id):
    mask = query_responses != pad_token_id
    position_ids = mask.cumsum(1) - mask.long()
    ids = torch.masked_fill(query_responses, ~mask, 0)
    out = model(input_ids=ids, attention_mask=mask, position_ids=position_ids, return_dict=True)
    logits = out.logits[:, context_length - 1 : -1]
    response = query_responses[:, context_length:]
    return torch.gather(logits.log_softmax(-1), 2, response.unsqueeze(-1)).squeeze(-1)
""",
        {**COMPLETION, "attention": "masked"},
    ),
    "tokenizer knows the padding": (
        """
def score_tokens(model, tokenizer, ids):
    mask = (ids != tokenizer.pad_token_id).long()
    logits = model(input_ids=ids, attention_mask=mask).logits[:, :-1]
    return torch.log_softmax(logits, -1).gather(-1, ids[:, 1:, None]).squeeze(-1)
""",
        ALL,
    ),
    "autocast": (
        """
def get_log_probs(model, ids, mask):
    with torch.autocast(device_type="cpu", dtype=torch.bfloat16, enabled=False):
        logits = model(ids, attention_mask=mask).logits
    logits = logits[:, :-1].float()
    return torch.log_softmax(logits, -1).gather(-1, ids[:, 1:, None]).squeeze(-1)
""",
        ALL,
    ),
    "lengths of every row": (
        """
def rows_of_logps(model, input_ids, prompt_lens):
    logps = torch.log_softmax(model(input_ids).logits[:, :-1], -1)
    logps = logps.gather(-1, input_ids[:, 1:, None]).squeeze(-1)
    return [row[n - 1 :] for row, n in zip(logps, prompt_lens)]
""",
        COMPLETION,
    ),
    "helper asks the model": (
        """
def _forward(model, ids, mask):
    return model(input_ids=ids, attention_mask=mask).logits


def gather_logps(model, ids, mask, completion_len):
    logits = _forward(model, ids, mask)[:, -completion_len - 1 : -1]
    targets = ids[:, -completion_len:]
    return logits.log_softmax(-1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)
""",
        {**COMPLETION, "attention": "masked"},
    ),
    "positions start anew": (
        """
def packed_logps(model, input_ids, position_ids):
    logits = model(input_ids=input_ids, position_ids=position_ids).logits[:, :-1]
    return logits.log_softmax(-1).gather(-1, input_ids[:, 1:, None]).squeeze(-1)
""",
        ALL,
    ),
}
IMPORTS = "import torch\nimport torch.nn.functional as F\n\n"
