"""Every sandbox gets a child forked from one process that has imported NumPy and torch.

Importing torch takes a second, and a corpus has hundreds of scripts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import rlproof.bind.sandbox as sandbox
from rlproof.bind.children import Warm


@contextmanager
def warm_children() -> Iterator[None]:
    """Within, no child is started cold."""
    real = sandbox.cold
    with Warm(("numpy", "torch")) as warm:
        sandbox.cold = warm.start
        try:
            yield
        finally:
            sandbox.cold = real
