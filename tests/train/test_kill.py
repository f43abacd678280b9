"""A run that is really killed at random points goes on as if nothing had happened."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="each child is a fork")
def test_killed_and_resumed_until_done(tmp_path):
    found = subprocess.run(
        [sys.executable, "-m", "tests.support.killed", str(tmp_path), "7"],
        cwd=ROOT, capture_output=True, text=True, timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1",
             "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    said = json.loads(found.stdout.splitlines()[-1])
    assert said.pop("kills") >= 3
    assert said == {"weights": True, "metrics": True, "records": True}
