"""The example of docs/explanation/fused-loss.md."""

import runpy
from pathlib import Path

import pytest

pytest.importorskip("torch")


def test_the_example_of_the_page(capsys):
    runpy.run_path(str(Path(__file__).parents[3] / "docs" / "examples" / "fused.py"))
    first, second, third = capsys.readouterr().out.splitlines()
    fused, plain = first.removeprefix("loss ").split(", with the logits held ")
    assert fused == plain
    assert second == "same gradient"
    assert 0 < int(third.split(" of ")[0]) < 24
