"""What all tests share: the processes that children are forked from."""

import os
from collections.abc import Iterator

import pytest

from tests.support.warm import Pool, warm_children

os.environ["RLPROOF_CACHE_DIR"] = ""  # what is tested is executed, and leaves no folder


@pytest.fixture(scope="session", autouse=True)
def pool() -> Iterator[Pool]:
    with warm_children() as made:
        yield made


@pytest.fixture
def cold_children(pool: Pool) -> Iterator[None]:
    """For tests of the sandbox itself: its children start as they do for users."""
    with pool.unused():
        yield
