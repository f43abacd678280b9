"""What all tests share: the processes that children are forked from."""

from collections.abc import Iterator

import pytest

from tests.support.warm import Pool, warm_children


@pytest.fixture(scope="session", autouse=True)
def pool() -> Iterator[Pool]:
    with warm_children() as made:
        yield made


@pytest.fixture
def cold_children(pool: Pool) -> Iterator[None]:
    """For tests of the sandbox itself: its children start as they do for users."""
    with pool.unused():
        yield
