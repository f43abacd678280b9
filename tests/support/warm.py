"""Every sandbox gets a child forked from one process that has imported NumPy and torch.

Importing torch takes a second, and a corpus has hundreds of scripts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import rlproof.bind.sandbox as sandbox
import rlproof.repair.verify as verify
from rlproof.bind.children import Warm


@contextmanager
def warm_children() -> Iterator[None]:
    """Within, no child is started cold."""
    real, own = sandbox.cold, verify.warm_for
    with Warm(("numpy", "torch")) as warm:
        sandbox.cold, verify.warm_for = warm.start, lambda _: None
        try:
            yield
        finally:
            sandbox.cold, verify.warm_for = real, own
