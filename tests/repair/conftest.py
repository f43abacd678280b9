"""Searches for repairs run a script many times: their children are forked from a warm one."""

import pytest
from tests.support.warm import warm_children


@pytest.fixture(scope="session", autouse=True)
def _warm():
    with warm_children():
        yield
