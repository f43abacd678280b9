"""What a file says elsewhere, as evidence: ranks, precisions, adapters, axes, groups.

Each faulty text is found once; each change of it takes the evidence away, or puts it right.
"""

from __future__ import annotations

import ast

import pytest

from rlproof.judge.source_loop import judge
from rlproof.read.source import Source
from rlproof.read.targets import Script

RANKS = """
def train(model, loader, optimizer):
    model = DDP(model)
    for micro_batches in loader:
        scale = sum(mb["loss_mask"].sum() for mb in micro_batches)
        for mb in micro_batches:
            ratio = torch.exp(model(mb["ids"]) - mb["old_logps"])
            loss = -(ratio * mb["advantages"] * mb["loss_mask"]).sum() / scale
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""
PRECISIONS = """
def train(model, batches, optimizer):
    for batch in batches:
        with torch.no_grad():
            old_logps = model(batch["ids"])
        for epoch in range(2):
            with torch.autocast("cuda"):
                logps = model(batch["ids"])
            loss = -(torch.exp(logps - old_logps) * batch["advantages"]).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
"""
ADAPTERS = """
def train(base, batches, optimizer):
    model = PeftModel.from_pretrained(base, "sft-adapter", is_trainable=True)
    for batch in batches:
        with torch.no_grad(), model.disable_adapter():
            ref_logps = model(batch["ids"])
        logps = model(batch["ids"])
        gap = ref_logps - logps
        loss = -(logps * batch["advantages"]).mean() + (torch.exp(gap) - gap - 1).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""
AXES = """
def step(x):
    logp = -(x**2)
    logp = logp.mean(dim=tuple(range(1, logp.ndim)))
    return logp, x


def train(model, batches, optimizer):
    for batch in batches:
        logp, mean = step(model(batch["x"]))
        bias = (mean - batch["mean"]).pow(2).mean(dim=tuple(range(1, logp.ndim)))
        loss = -(torch.exp(logp - batch["old_logp"] + bias) * batch["advantages"]).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""
GROUPS = """
def train(model, batches, optimizer, G):
    for batch in batches:
        for part in batch:
            rewards = score(part)
            advantages = rewards - rewards.view(-1, G).mean(1).repeat_interleave(G)
            ratio = torch.exp(model(part["ids"]) - part["old_logps"])
            mask = part["mask"]
            loss = (-ratio * advantages * mask).sum() / mask.sum()
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""
FOUND = {
    "AGG003": RANKS,
    "LOP008": PRECISIONS,
    "LOP016": ADAPTERS,
    "ADV012": AXES,
    "AGG001": GROUPS,
}
CHANGES = [
    ("AGG003", "DDP(model)", "model.cuda()"),
    ("AGG003", "        for mb in", "        dist.all_reduce(scale)\n        for mb in"),
    ("AGG003", "/ scale", "* world_size / scale"),
    ("AGG003", 'sum(mb["loss_mask"].sum() for mb in micro_batches)', "512"),
    ("AGG003", "sum(mb", "len(micro_batches) + sum(mb"),
    ("LOP008", "torch.no_grad():", 'torch.no_grad(), torch.autocast("cuda"):'),
    ("LOP008", "torch.no_grad():", "torch.no_grad(), precision():"),
    ("LOP008", 'torch.autocast("cuda")', 'torch.autocast("cuda", enabled=False)'),
    ("LOP008", "old_logps = model(", "old_logps = sampler("),
    ("LOP008", "def train(", "accelerator = Accelerator()\n\n\ndef train("),
    ("LOP016", "sft-adapter", "adapter"),
    ("LOP016", "    for batch", "    model = model.merge_and_unload()\n    for batch"),
    ("LOP016", "sft-adapter", "sft-run/last_checkpoint"),
    ("LOP016", "ref_logps = model(", "base_logps = model("),
    ("ADV012", "range(1, logp.ndim)))\n        loss", "range(1, mean.ndim)))\n        loss"),
    ("ADV012", "    logp = logp.mean(dim=tuple(range(1, logp.ndim)))\n", ""),
    ("ADV012", "logp = logp.mean(dim=tuple(range(1, logp.ndim)))", "logp = rows(logp)"),
    ("ADV012", "range(1, logp.ndim)))\n        loss", "range(2, logp.ndim)))\n        loss"),
    ("AGG001", "rewards.view(-1, G)", "rewards.view(-1, 1)"),
    ("AGG001", "rewards.view(-1, G).mean(1).repeat_interleave(G)", "rewards.mean()"),
]  # fmt: skip


def codes(text: str) -> list[str]:
    found = judge(Script(Source("script.py", "import torch\n" + text, ast.parse(text)), ()))
    assert found.loops, "a loop that is not read proves nothing"
    return [code for code, _ in found.sightings]


@pytest.mark.parametrize("code", FOUND)
def test_found_once_and_by_its_code(code):
    assert codes(FOUND[code]) == [code]


@pytest.mark.parametrize(("code", "old", "new"), CHANGES, ids=[f"{c} {n}" for c, _, n in CHANGES])
def test_silent_without_the_evidence(code, old, new):
    assert FOUND[code].count(old) == 1, "the change must be one"
    assert codes(FOUND[code].replace(old, new)) == []


def test_rewards_of_the_whole_batch_say_nothing_of_a_part():
    text = GROUPS.replace("            rewards = score(part)\n", "")
    text = text.replace(
        "        for part in", "        rewards = score(batch)\n        for part in"
    )
    assert codes(text) == []
