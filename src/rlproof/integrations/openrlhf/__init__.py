r"""Record what OpenRLHF's `PolicyLoss` is computed from, and log metrics as JSON lines.

    RLPROOF_RECORD=steps-{rank}.jsonl RLPROOF_METRICS=metrics.jsonl \
        python -m rlproof.integrations.openrlhf --actor.model_name_or_path …

in the place of `python -m openrlhf.cli.train_ppo_ray`: the same program and options. OpenRLHF has
no place for loggers or losses of one's own, and its workers are processes of Ray; so the command
asks Ray to call `install` when each starts, and `install` changes three classes as they are
imported: `PolicyLoss` also records, `ActorPPOTrainer` also counts, `BasePPOTrainer` also logs.
What they compute and return stays as it is. Read against OpenRLHF 0.11.2.
Shapes: B rows, T slots.
"""

from rlproof.integrations.openrlhf.counting import Clock, count_updates
from rlproof.integrations.openrlhf.logger import JsonlLogger, add_logger
from rlproof.integrations.openrlhf.loss import record_loss
from rlproof.integrations.openrlhf.processes import install, runtime_environment

__all__ = [
    "Clock", "JsonlLogger", "add_logger", "count_updates", "install", "record_loss",
    "runtime_environment",
]  # fmt: skip
