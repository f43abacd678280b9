"""Updates in several processes, against one.

`torchrun --nproc_per_node 2 -m tests.support.two_processes`, or `accelerate launch --use_fsdp
--fsdp_version 2 --num_processes 2 -m …`, prints as JSON, relative:

    results   for every objective, the largest difference of a gradient and of a metric from
              autograd on all rows in one process
    steps     for models and settings, that of weights, gradient norms and log-probs over two steps
              of AdamW with a clip that bites
    share     of the weights, what the main process holds
"""

from __future__ import annotations

import copy
import json
import warnings
from typing import Any

import torch

from rlproof.train import optimizer, policy
from rlproof.train.config import TrainConfig
from rlproof.train.distributed import Ranks, full, ranks
from rlproof.train.fused.batch import FusedFallbackWarning
from rlproof.train.step import Updater, update_metrics
from tests.support import tiny_policy
from tests.train.test_step import ALL, GROUP, config, difference, gradients, plain, step, updater

ODD = len(tiny_policy.CHARS) + 3
"""Rows of an embedding that two processes don't divide."""
STEPS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "llama": (tiny_policy.llama(), {}),
    "llama, activations computed again": (
        tiny_policy.llama(), {"model": {"gradient_checkpointing": True}},
    ),
    "gpt2, tied, odd": (tiny_policy.gpt2(ODD), {}),
    "llama, adapters": (tiny_policy.llama(), {"lora": {"rank": 2, "targets": "all-linear"}}),
}  # fmt: skip
"""Models and settings."""


def compared(name: str, world: Ranks) -> tuple[float, float]:
    """Gradients and metrics of this process's rows, exchanged, and of all rows."""
    objective = ALL[name]
    data = step(objective)
    whole = updater(config(), objective)
    expected = update_metrics(objective, whole.gradient(data), Ranks())
    _, autograd = plain(whole, objective, data)
    how = config(GROUP if objective.aggregation == "prompt-mean" else 3)
    share = made(how, tiny_policy.llama(), name, world)
    update = share.gradient(own_rows(data, world))
    found = update_metrics(objective, update, world)
    gaps = [abs(found[k] - expected[k]) / (abs(expected[k]) + 1e-3) for k in expected]
    here = {one: full(gradient) for one, gradient in gradients(share).items()}
    return difference(here, autograd), max(gaps)


def made(how: TrainConfig, settings: dict[str, Any], name: str, world: Ranks) -> Updater:
    """An updater in double precision, with a reference; adapters are the same in each."""
    torch.manual_seed(0)
    own = policy.made(how, tiny_policy.model(settings), tiny_policy.tokenizer())
    own.model.double()
    if not own.adapted:
        own.reference = copy.deepcopy(own.scorer).eval().requires_grad_(False)
    world.shard(own)
    return Updater(own, ALL[name], how, world, optimizer.made(own.trained(), how.optimizer))


def own_rows(data: Any, world: Ranks) -> Any:
    """The rows of this process."""
    rows = len(data) // world.world
    return data.rows(world.rank * rows, (world.rank + 1) * rows)


def stepped(name: str, world: Ranks) -> float:
    """The largest difference over two steps; the weights move between them."""
    settings, more = STEPS[name]
    how = config(3).but(optimizer={"clip_norm": 0.05, "lr": 0.01}, **more)
    data = step(ALL["grpo"])
    gaps = []
    one, many = (made(how, settings, "grpo", group) for group in (Ranks(), world))
    for _ in range(2):
        norms = [one.gradient(data).grad_norm, many.gradient(own_rows(data, world)).grad_norm]
        assert norms[0] > 0.05
        gaps.append(abs(norms[0] - norms[1]) / norms[0])
        assert many.agreement(own_rows(data, world)) < 1e-6
        for updates in (one, many):
            updates.apply(0.01)
        weights = [
            {n: full(p.detach()) for n, p in x.policy.trained().items()} for x in (many, one)
        ]
        gaps.append(difference(*weights))
        for score in (Updater.reference, lambda updates, rows: updates.score(rows)[0]):
            expected = own_rows(data, world).mask * score(one, own_rows(data, world))
            found = own_rows(data, world).mask * score(many, own_rows(data, world))
            gaps.append(float((found - expected).abs().max()))
        with world.whole(many.policy.model) as model, torch.no_grad():
            ids = data.rollout.ids
            gap = model(ids).logits - one.policy.model(ids).logits
            gaps.append(float(gap.abs().max()))
    return max(gaps)


def held(world: Ranks) -> float:
    """The share of the weights that this process holds."""
    parameters = list(made(config(), tiny_policy.llama(), "grpo", world).policy.model.parameters())
    here = sum(getattr(p, "_local_tensor", p).numel() for p in parameters)
    return here / sum(p.numel() for p in parameters)


if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.simplefilter("error", FusedFallbackWarning)
    group = ranks()
    results = {name: compared(name, group) for name in ALL}
    steps = {name: stepped(name, group) for name in STEPS}
    said = {"processes": group.world, "results": results, "steps": steps, "share": held(group)}
    if group.main:
        print(json.dumps(said))
