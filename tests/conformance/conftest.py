"""What the conformance tests share: one thread for tiny tensors."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

collect_ignore_glob = [] if find_spec("torch") else ["test_*.py"]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
