"""What is published: an archive with all that its tests need, and a wheel that works alone."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import rlproof
from rlproof.faults.page import page

ROOT = Path(__file__).parents[1]
OFFLINE = ("Failed to establish a new connection", "Temporary failure", "Name or service not known")
LEFT_OUT = {".gitignore"}  # hatchling puts it in, others need not


def asked(command, **options):
    """Run a command that may need the network; skip where there is none."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options
    )
    if done.returncode and any(sign in done.stdout for sign in OFFLINE):
        pytest.skip("what is built and installed is downloaded, and there is no network")
    assert done.returncode == 0, done.stdout
    return done.stdout


def tracked(folder="."):
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout, so nothing says which files there should be")
    listed = subprocess.run(
        ["git", "ls-files", "-z", folder], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {name for name in listed.stdout.split("\0") if (ROOT / name).is_file()}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The archive, and the wheel that is built from it."""
    pytest.importorskip("build", reason="the package build is not installed")
    folder = tmp_path_factory.mktemp("dist")
    asked([sys.executable, "-P", "-m", "build", "--outdir", str(folder), str(ROOT)], cwd=folder)
    (archive,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return archive, wheel


@pytest.mark.slow
def test_the_archive_has_every_file_of_the_repository(built):
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert tracked() - names - LEFT_OUT == set()
    assert "PKG-INFO" in names


@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_package(built):
    with zipfile.ZipFile(built[1]) as wheel:
        names = set(wheel.namelist())
    assert {name.removeprefix("src/") for name in tracked("src/rlproof")} - names == set()
    assert {name.split("/")[0] for name in names} == {
        "rlproof",
        f"rlproof-{rlproof.__version__}.dist-info",
    }


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(built, tmp_path):
    asked([sys.executable, "-m", "venv", str(tmp_path / "venv")])
    binaries = tmp_path / "venv" / "bin"
    asked([str(binaries / "pip"), "install", "-q", str(built[1])])
    (tmp_path / "train.py").write_text(page("SUR004").planted, "utf-8")
    (tmp_path / "home").mkdir()

    def run(*command):
        plain = {"PATH": f"{binaries}{os.pathsep}/usr/bin:/bin", "HOME": str(tmp_path / "home")}
        return subprocess.run(
            command, cwd=tmp_path, env={**plain, "LC_ALL": "C.UTF-8"},
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip

    where = run("python", "-c", "import rlproof; print(rlproof.__file__, rlproof.__version__)")
    file, version = where.stdout.split()
    assert Path(file).is_relative_to(tmp_path / "venv")
    assert version == rlproof.__version__
    demo = run("rlproof", "demo")
    assert (demo.returncode, demo.stderr) == (0, "")
    assert "SUR004 optimistic-clip" in demo.stdout
    checked = run("rlproof", "check", "--format", "concise", "train.py")
    assert (checked.returncode, checked.stderr) == (1, "")
    assert checked.stdout.startswith("train.py:12:17: SUR004")
    explained = run("rlproof", "explain", "SUR004")
    assert explained.stdout == page("SUR004").markdown
    served = run("rlproof", "lsp")
    assert served.returncode == 2
    assert "pip install 'rlproof[lsp]'" in served.stderr
