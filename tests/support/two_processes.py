"""One update in several processes, against autograd on all rows in one.

`torchrun --nproc_per_node 2 -m tests.support.two_processes` prints, for every objective, the
largest difference of a gradient and of a metric, relative, as JSON.
"""

from __future__ import annotations

import json

import torch

from rlproof.train import optimizer, policy
from rlproof.train.distributed import Ranks, full, ranks
from rlproof.train.step import Updater, update_metrics
from tests.support import tiny_policy
from tests.train.test_step import ALL, GROUP, config, difference, gradients, plain, step, updater


def compared(name: str, world: Ranks) -> tuple[float, float]:
    """Gradients and metrics of this process's rows, exchanged, and of all rows."""
    objective = ALL[name]
    data = step(objective)
    whole = updater(config(), objective)
    expected = update_metrics(objective, whole.gradient(data), Ranks())
    _, autograd = plain(whole, objective, data)
    how = config(GROUP if objective.aggregation == "prompt-mean" else 3)
    made = policy.made(how, tiny_policy.model(), tiny_policy.tokenizer())
    made.model.double()
    world.shard(made)
    own = optimizer.made(made.trained(), how.optimizer)
    share = Updater(made, objective, how, world, own)
    rows = len(data) // world.world
    update = share.gradient(data.rows(world.rank * rows, (world.rank + 1) * rows))
    found = update_metrics(objective, update, world)
    gaps = [abs(found[k] - expected[k]) / (abs(expected[k]) + 1e-3) for k in expected]
    found_here = {name: full(one) for name, one in gradients(share).items()}
    return difference(found_here, autograd), max(gaps)


if __name__ == "__main__":
    torch.set_num_threads(1)
    group = ranks()
    results = {name: compared(name, group) for name in ALL}
    if group.main:
        print(json.dumps({"processes": group.world, "results": results}))
