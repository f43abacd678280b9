"""Training loops that can't be run here, each with a fault and without, in three styles.

A case is text with `setup` (what is made before the loop) and `body` (the loop). The same text
becomes a function, the methods of a class, or statements of a module. The comment `# here` marks
the line that must be named.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from textwrap import dedent, indent

STYLES = ("function", "method", "module")
_SHARED = (
    "model|ref_model|old_model|optimizer|loader|tokenizer|accelerator|epochs|accum|group_size|micro"
)

HELPERS = """
import copy

import torch


def token_logps(model, ids, temperature=1.0):
    logits = model(ids).logits[:, :-1] / temperature
    return torch.log_softmax(logits, dim=-1).gather(-1, ids[:, 1:, None])[..., 0]
"""
PLAIN_HELPERS = HELPERS.replace(", temperature=1.0", "").replace(" / temperature", "")


@dataclass(frozen=True)
class Case:
    """One loop: what differs between the faulty and the sound version is in the two texts."""

    name: str
    code: str
    bad: str
    good: str
    setup_bad: str = "optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)"
    setup_good: str = ""
    helpers: str = HELPERS

    def text(self, style: str, *, faulty: bool) -> str:
        """The script in one of the styles."""
        setup = dedent(self.setup_bad if faulty or not self.setup_good else self.setup_good).strip()
        body = dedent(self.bad if faulty else self.good).strip()
        match style:
            case "function":
                inner = indent(f"{setup}\n{body}", "    ")
                main = f"def train(model, tokenizer, loader, score, epochs=4):\n{inner}\n"
            case "method":
                start = indent(_of_self(setup), " " * 8)
                inner = indent(_of_self(body), " " * 8)
                main = (
                    "class Trainer:\n    def __init__(self, model, tokenizer, loader, epochs=4):\n"
                    "        self.model = model\n        self.tokenizer = tokenizer\n"
                    "        self.loader = loader\n        self.epochs = epochs\n"
                    f"{start}\n\n    def train(self, score):\n{inner}\n"
                )
            case _:
                main = f"epochs = 4\nmodel, tokenizer, loader = make()\n{setup}\n{body}\n"
        return f"{self.helpers}\n\n{main}"


def _of_self(text: str) -> str:
    text = re.sub(rf"(?<![\w.])({_SHARED})(?!\w|=[^=])", r"self.\1", text)
    return re.sub(rf"^(\s*)({_SHARED}) = ", r"\1self.\2 = ", text, flags=re.MULTILINE)


ROLLOUT = """
for batch in loader:
    ids = model.generate(**batch, do_sample=True, temperature=1.0)
    advantages = score(ids)
"""
UPDATE = """
        new_logps = token_logps(model, ids)
        ratio = torch.exp(new_logps - old_logps)
        loss = -torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
_KL = """
        new_logps = token_logps(model, ids)
        ratio = torch.exp(new_logps - old_logps)
        kl = torch.exp(ref_logps - new_logps) - (ref_logps - new_logps) - 1
        loss = (0.04 * kl - torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
_OPTIMIZER = "optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)"
_ONCE = """
    with torch.no_grad():
        old_logps = token_logps(model, ids)
"""
_MICRO = """
for batch in loader:
    ids = model.generate(**batch, do_sample=True, temperature=1.0)
    advantages = score(ids)
    mask = (ids[:, 1:] > 2).float()
    total = mask.sum()
    for start in range(0, len(ids), 4):
        rows = slice(start, start + 4)
        logps = token_logps(model, ids[rows])
        term = -torch.exp(logps - logps.detach()) * advantages[rows] * mask[rows]
        completion_mask = mask[rows]
        LOSS
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
_COUNTED = """
for i, batch in enumerate(loader):
    ids = model.generate(**batch, do_sample=True, temperature=1.0)
    advantages = score(ids)
    new_logps = token_logps(model, ids)
    ratio = torch.exp(new_logps - new_logps.detach())
    loss = -(ratio * advantages).mean()
    PART
"""
_GROUPED = """
for batch in loader:
    prompts = [tokenizer(row["question"]) for row in batch]
    REPEAT
    ids = model.generate(repeated, do_sample=True, temperature=1.0)
    rewards = torch.tensor(score(ids))
    CUT
    advantages = (rewards - mean.repeat_interleave(group_size)).unsqueeze(1)
    logps = token_logps(model, ids)
    loss = -(torch.exp(logps - logps.detach()) * advantages).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def _micro(loss: str) -> str:
    return _MICRO.replace("        LOSS\n", indent(dedent(loss).strip(), " " * 8) + "\n")


def _counted(part: str) -> str:
    return _COUNTED.replace("    PART\n", indent(dedent(part).strip(), " " * 4) + "\n")


def _grouped(repeat: str, cut: str) -> str:
    return _GROUPED.replace("REPEAT", repeat).replace("CUT", cut)


_COMPARED = """
for batch in loader:
    ids = model.generate(**batch, do_sample=True, temperature=1.0)
    advantages = score(ids)
    MASK
    logps = token_logps(model, ids)
    loss = -(torch.exp(logps - logps.detach()) * advantages * completion_mask).sum()
    loss = loss / completion_mask.sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

CASES = [
    Case(
        "recomputed-without-gradient",
        "LOP001",
        ROLLOUT
        + """
    for _ in range(epochs):
        with torch.no_grad():
            old_logps = token_logps(model, ids)  # here
"""
        + UPDATE,
        ROLLOUT + _ONCE + "\n    for _ in range(epochs):" + UPDATE,
    ),
    Case(
        "recomputed-and-detached-in-mini-batches",
        "LOP001",
        ROLLOUT
        + """
    for epoch in range(3):
        for rows in torch.randperm(len(ids)).split(4):
            old_logps = token_logps(model, ids[rows]).detach()  # here
            new_logps = token_logps(model, ids[rows])
            log_ratio = new_logps - old_logps
            ratio = log_ratio.exp()
            loss = -torch.min(ratio, ratio.clamp(0.8, 1.2)).mul(advantages[rows]).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
""",
        ROLLOUT
        + """
    old_logps = token_logps(model, ids).detach()
    for epoch in range(3):
        for rows in torch.randperm(len(ids)).split(4):
            new_logps = token_logps(model, ids[rows])
            log_ratio = new_logps - old_logps[rows]
            ratio = log_ratio.exp()
            loss = -torch.min(ratio, ratio.clamp(0.8, 1.2)).mul(advantages[rows]).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
""",
    ),
    Case(
        "a-copy-of-the-new-ones-over-several-epochs",
        "LOP001",
        ROLLOUT
        + """
    for _ in range(4):
        new_logps = token_logps(model, ids)
        ratio = torch.exp(new_logps - new_logps.detach())  # here
        loss = -(ratio * advantages).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
        ROLLOUT
        + """
    for _ in range(1):
        new_logps = token_logps(model, ids)
        ratio = torch.exp(new_logps - new_logps.detach())
        loss = -(ratio * advantages).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    ),
    Case(
        "kept-from-the-first-rollout",
        "LOP002",
        "old_logps = None"
        + ROLLOUT
        + """
    if old_logps is None:
        old_logps = token_logps(model, ids).detach()  # here
    for _ in range(epochs):"""
        + UPDATE,
        "old_logps = None"
        + ROLLOUT
        + """
    old_logps = token_logps(model, ids).detach()
    for _ in range(epochs):"""
        + UPDATE,
    ),
    Case(
        "another-name-for-the-model",
        "LOP003",
        ROLLOUT
        + """
    with torch.no_grad():
        old_logps = token_logps(model, ids)
        ref_logps = token_logps(ref_model, ids)
    for _ in range(epochs):"""
        + _KL,
        ROLLOUT
        + """
    with torch.no_grad():
        old_logps = token_logps(model, ids)
        ref_logps = token_logps(ref_model, ids)
    for _ in range(epochs):"""
        + _KL,
        f"{_OPTIMIZER}\nref_model = model.eval()  # alias",
        f"{_OPTIMIZER}\nref_model = copy.deepcopy(model).eval()",
    ),
    Case(
        "reference-asked-of-the-policy",
        "LOP003",
        ROLLOUT
        + """
    with torch.no_grad():
        old_logps = token_logps(model, ids)
        ref_logps = token_logps(model, ids)  # here
    for _ in range(epochs):"""
        + _KL,
        ROLLOUT
        + """
    with torch.no_grad():
        old_logps = token_logps(model, ids)
        with model.disable_adapter():
            ref_logps = token_logps(model, ids)
    for _ in range(epochs):"""
        + _KL,
    ),
    Case(
        "never-cleared",
        "LOP005",
        (ROLLOUT + _ONCE + "\n    for _ in range(epochs):" + UPDATE)
        .replace("        optimizer.zero_grad()\n", "")
        .replace("optimizer.step()", "optimizer.step()  # here"),
        ROLLOUT + _ONCE + "\n    for _ in range(epochs):" + UPDATE,
    ),
    Case(
        "cleared-before-the-update",
        "LOP005",
        _counted("""
            loss.backward()
            optimizer.zero_grad()  # here
            optimizer.step()
        """),
        _counted("""
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        """),
    ),
    Case(
        "cleared-in-every-micro-batch",
        "LOP005",
        _counted("""
            optimizer.zero_grad()  # here
            (loss / 4).backward()
            if (i + 1) % 4 == 0:
                optimizer.step()
        """),
        _counted("""
            (loss / 4).backward()
            if (i + 1) % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()
        """),
    ),
    Case(
        "applied-in-every-micro-batch",
        "LOP005",
        _counted("""
            (loss / 4).backward()
            optimizer.step()
            if (i + 1) % 4 == 0:
                optimizer.zero_grad()  # here
        """),
        _counted("""
            (loss / 4).backward()
            if (i + 1) % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()
        """),
    ),
    Case(
        "negated-twice",
        "LOP007",
        (ROLLOUT + _ONCE + "\n    for _ in range(epochs):" + UPDATE).replace(
            "loss.backward()", "(-loss).backward()  # here"
        ),
        (ROLLOUT + _ONCE + "\n    for _ in range(epochs):" + UPDATE)
        .replace("loss = -torch.min", "objective = torch.min")
        .replace("loss.backward()", "(-objective).backward()"),
    ),
    Case(
        "maximising-optimizer",
        "LOP007",
        (ROLLOUT + _ONCE + "\n    for _ in range(epochs):" + UPDATE).replace(
            "loss.backward()", "loss.backward()  # here"
        ),
        ROLLOUT + _ONCE + "\n    for _ in range(epochs):" + UPDATE,
        "optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, maximize=True)",
        _OPTIMIZER,
    ),
    Case(
        "token-means-of-micro-batches",
        "AGG001",
        _micro("loss = (term * completion_mask).sum() / completion_mask.sum()  # here"),
        _micro("loss = (term * completion_mask).sum() / total"),
    ),
    Case(
        "divided-by-hand-and-by-accelerate",
        "AGG002",
        """
        for batch in loader:
            with accelerator.accumulate(model):
                ids = model.generate(**batch, do_sample=True, temperature=1.0)
                logps = token_logps(model, ids)
                loss = -(torch.exp(logps - logps.detach()) * score(ids)).mean()
                loss = loss / accum_steps
                accelerator.backward(loss)  # here
                optimizer.step()
                optimizer.zero_grad()
        """,
        """
        for batch in loader:
            with accelerator.accumulate(model):
                ids = model.generate(**batch, do_sample=True, temperature=1.0)
                logps = token_logps(model, ids)
                loss = -(torch.exp(logps - logps.detach()) * score(ids)).mean()
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
        """,
        f"{_OPTIMIZER}\naccelerator = Accelerator(gradient_accumulation_steps=accum_steps)",
        helpers=HELPERS
        + "\n\naccum_steps = 8\nREWARD = 1.0\n\nfrom accelerate import Accelerator\n",
    ),
    Case(
        "divided-twice-by-hand",
        "AGG002",
        _counted("""
            loss = loss / accum_steps
            (loss / accum_steps).backward()  # here
            if (i + 1) % accum_steps == 0:
                optimizer.step()
                optimizer.zero_grad()
        """),
        _counted("""
            loss = loss / accum_steps
            loss.backward()
            if (i + 1) % accum_steps == 0:
                optimizer.step()
                optimizer.zero_grad()
        """),
        helpers=HELPERS + "\n\naccum_steps = 8\n",
    ),
    Case(
        "nucleus-sampling",
        "SMP001",
        (ROLLOUT + _ONCE + "\n    for _ in range(epochs):" + UPDATE).replace(
            "temperature=1.0)", "temperature=1.0, top_p=0.9)  # here"
        ),
        (ROLLOUT + _ONCE + "\n    for _ in range(epochs):" + UPDATE).replace(
            "temperature=1.0)", "temperature=1.0, top_p=1.0, top_k=0)"
        ),
    ),
    Case(
        "top-k-in-a-settings-object",
        "SMP001",
        """
        for batch in loader:
            sampling = SamplingParams(temperature=1.0, top_k=50)  # here
            ids = llm.generate(batch, sampling)
            logps = token_logps(model, ids)
            advantages = score(ids)
            loss = -(torch.exp(logps - logps.detach()) * advantages).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        """
        for batch in loader:
            sampling = SamplingParams(temperature=1.0, top_k=-1)
            ids = llm.generate(batch, sampling)
            logps = token_logps(model, ids)
            advantages = score(ids)
            loss = -(torch.exp(logps - logps.detach()) * advantages).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    ),
    Case(
        "sampled-warm-scored-cold",
        "LGP001",
        (ROLLOUT + _ONCE + "\n    for _ in range(epochs):" + UPDATE).replace(
            "temperature=1.0)", "temperature=0.7)  # here"
        ),
        ROLLOUT + _ONCE + "\n    for _ in range(epochs):" + UPDATE,
        helpers=PLAIN_HELPERS,
    ),
    Case(
        "padding-is-eos",
        "MSK004",
        _COMPARED.replace(
            "MASK", "completion_mask = (ids[:, 1:] != tokenizer.pad_token_id).float()  # here"
        ),
        _COMPARED.replace(
            "MASK",
            "is_eos = ids[:, 1:] == tokenizer.eos_token_id\n"
            "    completion_mask = (is_eos.cumsum(1) - is_eos.long() == 0).float()",
        ),
        f"{_OPTIMIZER}\ntokenizer.pad_token = tokenizer.eos_token",
    ),
    Case(
        "tiled-and-cut-consecutively",
        "ADV002",
        _grouped(
            "repeated = prompts * group_size",
            "mean = rewards.view(-1, group_size).mean(dim=1)  # here",
        ),
        _grouped(
            "repeated = [p for p in prompts for _ in range(group_size)]",
            "mean = rewards.view(-1, group_size).mean(dim=1)",
        ),
        f"{_OPTIMIZER}\ngroup_size = 8",
    ),
    Case(
        "consecutive-and-cut-as-tiles",
        "ADV002",
        _grouped(
            "repeated = [p for p in prompts for _ in range(group_size)]",
            "mean = rewards.view(group_size, -1).mean(dim=0)  # here",
        ),
        _grouped(
            "repeated = prompts * group_size", "mean = rewards.view(group_size, -1).mean(dim=0)"
        ),
        f"{_OPTIMIZER}\ngroup_size = 8",
    ),
]
