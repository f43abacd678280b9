"""Seeds for engines that take one a request."""

from __future__ import annotations

import numpy as np


def first_seed(seed: int, stream: int, batch: int) -> int:
    """The seed of row 0 of a batch, below 2³¹; row i takes the i-th after it.

    Rows of one batch differ, or a group would be the same completion many times.

    Args:
        seed: of the run.
        stream: of the process.
        batch: how many batches were sampled before.
    """
    return int(np.random.SeedSequence([seed, stream, batch]).generate_state(1)[0] >> 1)
