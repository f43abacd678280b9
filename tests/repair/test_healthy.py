"""`--fix` never changes a file without a fault: byte compare, file by file."""

from pathlib import Path

import pytest
from tests.faults.test_pages import CODES
from tests.support.trainers import LETTERS, trainer
from tests.support.variants import VARIANTS

from rlproof.checks import Options, check_paths
from rlproof.faults.page import page

EXAMPLES = Path(__file__).parents[2] / "examples"
PLAIN = [code for code in CODES if "import torch" not in page(code).healthy]
FEW = [v for v in VARIANTS if "import torch" not in v.text][::8]


def unchanged(tmp_path, *texts):
    """Whether one `check --fix` leaves every one of these scripts as it is."""
    paths = [tmp_path / f"script{i}.py" for i in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text, encoding="utf-8")
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}
    options = Options.resolve((), (), None, True, None, None, fix=True)
    outcome = check_paths(tuple(map(str, paths)), options)
    assert outcome.failures == []
    assert outcome.repairs == []
    assert outcome.patch == b""
    return before == {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}


@pytest.mark.slow
def test_some_healthy_twins(tmp_path):
    assert unchanged(tmp_path, *[page(code).healthy for code in PLAIN[::4]])


@pytest.mark.exhaustive
def test_all_healthy_twins(tmp_path):
    pytest.importorskip("torch")
    assert unchanged(tmp_path, *[page(code).healthy for code in CODES])


@pytest.mark.slow
def test_some_published_variants(tmp_path):
    assert unchanged(tmp_path, *[variant.text for variant in FEW])


@pytest.mark.exhaustive
def test_all_published_variants(tmp_path):
    pytest.importorskip("torch")
    assert unchanged(tmp_path, *[variant.text for variant in VARIANTS])


def test_repaired_example(tmp_path):
    assert unchanged(tmp_path, (EXAMPLES / "repaired_trainer.py").read_text())
    assert unchanged(tmp_path, trainer(LETTERS + "C", "numpy"))


def test_the_comparison_can_fail(tmp_path):
    path = tmp_path / "script0.py"
    with pytest.raises(AssertionError):
        unchanged(tmp_path, page("SUR001").planted)
    assert path.read_text() != page("SUR001").planted
