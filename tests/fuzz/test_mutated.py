"""Real files, damaged: every reader ends in a report or in one line that says what is wrong.

The same files each time. A case that fails is shown with the fewest changes that still fail;
what was found is kept in `test_finds.py`.
"""

from __future__ import annotations

import random
import tempfile
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.mutate import WAYS
from tests.fuzz.seeds import seeds
from tests.fuzz.targets import PACKAGES, TARGETS, held

FAST = {"script": 6, "record": 6, "notebook": 10, "lines": 8, "events": 10, "parquet": 10}
"""Examples of a target in the fast suite, where they are not as many as `USUAL`."""
USUAL, SLOW = 20, 25
CHANGES = st.lists(
    st.tuples(st.sampled_from(WAYS), st.integers(0, 2**20)), min_size=1, max_size=4
)  # fmt: skip


def attack(name: str, examples: int) -> None:
    """Give a target so many damaged files."""
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name])
    real = seeds(name)

    @settings(max_examples=examples, derandomize=True, database=None, deadline=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(st.sampled_from(range(len(real))), CHANGES, st.integers(0, len(real) - 1))
    def damaged(first: int, changes: list[tuple[object, int]], other: int) -> None:
        raw = real[first]
        for way, seed in changes:
            raw = way(random.Random(seed), raw, real[other])  # type: ignore[operator]
        with tempfile.TemporaryDirectory() as folder:
            held(name, raw, Path(folder))

    damaged()


@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")
@pytest.mark.parametrize("name", TARGETS)
def test_damaged_files(name: str) -> None:
    attack(name, FAST.get(name, USUAL))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")
@pytest.mark.parametrize("name", TARGETS)
def test_many_damaged_files(name: str) -> None:
    attack(name, SLOW * FAST.get(name, USUAL))


@pytest.mark.parametrize("name", TARGETS)
def test_the_files_are_real(name: str, tmp_path: Path) -> None:
    """Undamaged, each is read: a reader that refuses everything would pass all other tests."""
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name])
        import_module(PACKAGES[name])
    for raw in seeds(name):
        assert held(name, raw, tmp_path) == "", raw[:200]
