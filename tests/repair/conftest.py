"""Searches for repairs run a script many times: their children are forked from a warm one."""

import pytest
from tests.support.warm import warm_children


@pytest.fixture(scope="module", autouse=True)
def _warm():
    with warm_children():
        yield
