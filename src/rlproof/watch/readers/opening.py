"""Which reader a path is for: by its name, and where that says nothing by its first lines."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator

from rlproof.errors import ConfigError
from rlproof.read.source import shown
from rlproof.watch.readers import console, extras, jsonl, state, table, trackio
from rlproof.watch.readers.items import Item, Listed, Source, Unread
from rlproof.watch.readers.tail import Wait

_HEAD = 1 << 16
_ENDINGS = (".jsonl", ".ndjson", ".parquet", ".csv", ".wandb")


def open_source(path: str, wait: Wait | None = None) -> Source:
    """The items of a file or folder.

    Args:
        path: a log, a dump, a checkpoint's folder, a folder of dumps or of events; of a trackio
            project with several runs the last one, or the one named in `project.db#run`.
        wait: for a file that is followed while it grows.

    Raises:
        ConfigError: there is no such path, or nothing in the folder is known, or a folder is to
            be followed, or a package is missing.
    """
    if os.path.isdir(path):
        return _of_folder(path, wait)
    file, run = trackio.split(path)
    if run is not None and os.path.isdir(file):
        return _of_folder(file, wait, run)
    if not os.path.exists(file):
        raise ConfigError(f"{path}: no such file")
    _check_readable(file)
    if run is not None or _is_sqlite(file):
        return trackio.source(file, run, wait)
    return _of_file(path, wait)


def _check_readable(path: str) -> None:
    """A pipe would be waited for, and its first lines could not be read twice."""
    if not os.path.isfile(path):
        raise ConfigError(f"{shown(path)}: not a regular file; save it as one, or name a folder")
    try:
        open(path, "rb").close()
    except OSError as error:
        raise ConfigError(f"{shown(path)}: can't be read ({error.strerror})") from None


def _of_file(path: str, wait: Wait | None) -> Source:
    name = os.path.basename(path)
    if name == "trainer_state.json":
        return Listed("trainer_state.json", "TRL", state.read(path, wait))
    other = _needing_packages(path, name)
    if other is not None:
        if wait is not None:
            raise ConfigError(f"{path}: can't be followed; --follow reads lines as they come")
        return other
    if name.endswith((".csv", ".tsv")):
        return Listed("CSV", None, table.read(path, wait))
    if name.endswith((".jsonl", ".ndjson")) or _starts_like_json(path):
        return Listed("JSON lines", None, jsonl.read(path, wait))
    return Listed("printed output", None, console.read(path, wait))


def _needing_packages(path: str, name: str) -> Source | None:
    if name.endswith(".parquet"):
        return Listed("Parquet", None, extras.parquet(path))
    if "tfevents" in name:
        return Listed("TensorBoard events", None, extras.tensorboard(path))
    if name.endswith(".wandb"):
        return Listed("offline run of wandb", None, extras.wandb(path))
    return None


def _starts_like_json(path: str) -> bool:
    """A document of ours would be told by its name; here JSON lines against printed output."""
    with open(path, "rb") as file:
        head = file.read(_HEAD).lstrip()
    return head[:2] in (b'{"', b"{}") or head[:3] == b'{ "'


def _is_sqlite(path: str) -> bool:
    with open(path, "rb") as file:
        head = file.read(len(trackio.MAGIC))
    return head == trackio.MAGIC or path.endswith(".db")


def _of_folder(path: str, wait: Wait | None, run: str | None = None) -> Source:
    if run is not None:
        return _of_project(path, trackio.stores(path), run, wait)
    own = os.path.join(path, "trainer_state.json")
    if os.path.exists(own):
        return _of_file(own, wait)
    saved = sorted(glob.glob(os.path.join(glob.escape(path), "checkpoint-*", "trainer_state.json")),
                   key=_number)  # fmt: skip
    if saved:
        return _of_file(saved[-1], wait)  # the last one has the whole history
    projects = trackio.stores(path)
    if projects and not _others(path, projects):
        return _of_project(path, projects, run, wait)
    if wait is not None:
        raise ConfigError(f"{path}: a folder can't be followed; name one file of lines")
    names = sorted(_known(path), key=lambda name: (_number(name), name))
    if not names:
        raise ConfigError(f"{path}: no log or dump that is known in this folder")
    kind = f"folder of {len(names)} files" if len(names) > 1 else "folder"
    return Listed(kind, None, _one_by_one(path, names))


def _known(path: str) -> Iterator[str]:
    """Files by their names; those of the folder `completions`, where TRL puts them, too."""
    for folder in ("", "completions"):
        whole = os.path.join(path, folder)
        if not os.path.isdir(whole):
            continue
        for name in os.listdir(whole):
            named = name.endswith(_ENDINGS) or "tfevents" in name
            if named and os.path.isfile(os.path.join(whole, name)):
                yield os.path.join(folder, name)


def _of_project(path: str, projects: list[str], run: str | None, wait: Wait | None) -> Source:
    if len(projects) == 1:
        return trackio.source(projects[0], run, wait)
    if not projects:
        raise ConfigError(f"{path}#{run}: no trackio project in this folder")
    names = ", ".join(os.path.basename(project) for project in projects)
    raise ConfigError(f"{path}: {len(projects)} trackio projects; name one of {names}")


def _others(path: str, projects: list[str]) -> list[str]:
    """Known files but for those that trackio exports beside its projects."""
    stems = tuple(os.path.splitext(os.path.basename(project))[0] for project in projects)
    return [name for name in _known(path) if not name.startswith(stems)]


def _one_by_one(path: str, names: list[str]) -> Iterator[Item]:
    for name in names:
        whole = os.path.join(path, name)
        stem = os.path.splitext(os.path.basename(name))[0]
        try:
            _check_readable(whole)
        except ConfigError as error:
            yield Unread(0, str(error))
            continue
        if name.endswith((".jsonl", ".ndjson")):  # verl names each dump after its step
            yield from jsonl.read(whole, None, float(stem) if stem.isdecimal() else None)
        else:
            yield from _of_file(whole, None).items()


def _number(path: str) -> int:
    """The last number in a name, so that 10 comes after 9."""
    found = re.findall(r"\d+", path)
    return int(found[-1]) if found else -1
