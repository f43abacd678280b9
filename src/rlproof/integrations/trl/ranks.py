"""TRL's processes, for the sums that denominators and advantages are taken over."""

from __future__ import annotations

from typing import Any

from rlproof.train.distributed import Launched


class TrainerRanks(Launched):
    """The accelerator that the trainer has."""

    def __init__(self, accelerator: Any) -> None:
        self.accelerator = accelerator
        self.world = int(accelerator.num_processes)
        self.rank = int(accelerator.process_index)
