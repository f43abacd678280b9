"""The run of docs/how-to/train.md works as it stands; every setting has a text."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from rlproof.cli import main
from rlproof.train.config import load

PAGE = Path(__file__).parents[2] / "docs/how-to/train.md"
FILES = dict(re.findall(r"^```\w+\n# (\S+\.\w+)\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def test_the_page_has_its_files():
    assert set(FILES) == {"make.py", "tasks.py", "run.toml"}


def test_the_settings_of_the_page_are_read(folder):
    config = load(folder / "run.toml")
    assert (config.resolved().name, config.rows) == ("custom", 256)


@pytest.mark.slow
def test_the_run_of_the_page_learns(folder):
    """In 50 of its 120 steps: no answer is right at first, most are at the end."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    subprocess.run([sys.executable, "make.py"], cwd=folder, check=True)
    run = ["train", str(folder / "run.toml"), "--check-first-step", "--set", "run.steps=50"]
    found = CliRunner().invoke(main, run)
    assert found.exit_code == 0, found.output
    first, last = re.findall(r"reward (\S+) at first, (\S+) at the end", found.output)[0]
    assert float(first) < 0.3
    assert float(last) > 1.0
    for name in ("metrics", "steps.rlproof"):
        seen = CliRunner().invoke(main, ["inspect", str(folder / f"out/{name}.jsonl")])
        assert seen.exit_code == 0, seen.output


def test_every_setting_has_a_text():
    from rlproof_docs import settings

    page = settings.document()
    for name, kind in settings.sections().items():
        assert f"## [{name}]" in page
        rows = list(settings.settings(kind))
        assert rows
        assert all(text.endswith(".") for _, _, text in rows)
