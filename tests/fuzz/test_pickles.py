"""A pickle runs code when it is loaded. Under any name that is read, none is."""

from __future__ import annotations

import io
import os
import pickle
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest

from rlproof.errors import RlproofError
from tests.fuzz.targets import PACKAGES, TARGETS, contents, inspect
from tests.fuzz.watching import watched

OTHERS = ("script", "notebook", "run_toml", "project", "baseline", "prompts", "stored")
NAMES = (
    "a.json", "a.jsonl", "a.parquet", "a.npz", "a.npy", "a.pt", "a.pth", "a.bin", "a.pkl", "a.csv",
    "a.log", "a.db", "a.safetensors", "trainer_state.json", "run.wandb", "events.out.tfevents.1",
)  # fmt: skip


class _Bomb:
    """Makes a folder when it is loaded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return os.mkdir, (str(self.folder),)


def _zipped(raw: bytes, name: str) -> bytes:
    """What `torch.save` and `numpy.savez` write: an archive with a pickle in it."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr(name, raw)
    return sink.getvalue()


def _array(raw: bytes) -> bytes:
    """A .npy file of objects."""
    head = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + raw


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "bare": lambda raw: raw,
    "torch": lambda raw: _zipped(raw, "archive/data.pkl"),
    "npz": lambda raw: _zipped(_array(raw), "a.npy"),
    "npy": _array,
}


@pytest.fixture(autouse=True, scope="module")
def packages() -> None:
    """Imported before anything is watched: wandb makes temporary folders when it is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for package in PACKAGES.values():
            with suppress(ImportError):
                import_module(package)


@pytest.fixture
def bomb(tmp_path: Path) -> bytes:
    return pickle.dumps(_Bomb(tmp_path / "exploded"))


def test_it_would_explode(bomb: bytes, tmp_path: Path) -> None:
    pickle.loads(bomb)
    assert (tmp_path / "exploded").is_dir()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NAMES)
def test_a_pickle_is_never_loaded(name: str, form: str, bomb: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / name).write_bytes(FORMS[form](bomb))
    before = contents(folder)
    for path in (folder / name, folder):
        with watched() as seen, suppress(RlproofError):
            inspect(str(path)) if path.is_file() else _folder(path)
        assert not seen
    assert not (tmp_path / "exploded").exists()
    assert contents(folder) == before


def _folder(path: Path) -> None:
    from rlproof.watch.command import inspect_path

    inspect_path(str(path), ())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", OTHERS)
def test_nor_by_what_reads_no_logs(name: str, form: str, bomb: bytes, tmp_path: Path) -> None:
    path = tmp_path / TARGETS[name].file
    path.write_bytes(FORMS[form](bomb))
    with watched() as seen, suppress(RlproofError):
        TARGETS[name].run(str(path))
    assert not seen
    assert not (tmp_path / "exploded").exists()
