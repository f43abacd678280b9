"""Everything the next step depends on, so that a resumed run takes it bit by bit alike.

    checkpoints/step-00000020/
        weights.safetensors      the parameters that are trained, float32
        optimizer.safetensors    the optimizer's state of each
        state.json               the next step, sizes of the logs, the settings
        rank-0.json              random generators of a process, and its sampler's state

No pickle is written or read. The learning rate and the order of the prompts are functions of the
step and need no state.
"""

from __future__ import annotations

import base64
import json
import os
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rlproof.errors import CheckpointError
from rlproof.train.atomic import Write, remove_folder, write_folder
from rlproof.train.distributed import as_shards

FORMAT = 1
"""Of the files; another one is refused."""


@dataclass(frozen=True, slots=True)
class State:
    """What a checkpoint says beside weights and optimizer."""

    step: int
    """The step that comes next, from 0."""
    sizes: Mapping[str, int]
    """Bytes of the logs at that time, by file name."""
    config: Mapping[str, Any]
    """The settings of the run."""


def folder_of(run: Path) -> Path:
    """Where a run's checkpoints are."""
    return run / "checkpoints"


def saved(run: Path) -> list[Path]:
    """The whole checkpoints of a run, oldest first."""
    return sorted(folder_of(run).glob("step-*"))


def write(
    run: Path,
    state: State,
    weights: Mapping[str, Tensor],
    moments: Mapping[str, Tensor],
    ranks: list[dict[str, Any]],
    keep: int,
    more: Mapping[str, Write],
) -> Path:
    """Write a checkpoint and remove the oldest beyond `keep`.

    Args:
        run: folder of the run.
        state: what comes next.
        weights: those that are trained, by name.
        moments: the optimizer's state of each, as `moments_of` names it.
        ranks: what `generators` gave, for each process.
        keep: how many checkpoints stay.
        more: further contents by name.

    Raises:
        CheckpointError: it could not be written; the older ones are as they were.
    """
    place = folder_of(run) / f"step-{state.step:08d}"
    if place.exists():
        return place
    about = {"format": FORMAT, "step": state.step, "sizes": dict(state.sizes),
             "config": state.config, "processes": len(ranks)}  # fmt: skip
    contents: dict[str, Write] = {
        "weights.safetensors": lambda path: tensors_to(path, weights),
        "optimizer.safetensors": lambda path: tensors_to(path, moments),
        "state.json": lambda path: path.write_text(json.dumps(about, indent=1)),
        **{f"rank-{n}.json": _json(one) for n, one in enumerate(ranks)},
        **more,
    }
    write_folder(place, contents)
    for old in saved(run)[:-keep]:
        remove_folder(old)
    return place


def write_file(path: Path, write: Write) -> None:
    """Write one file, whole or not at all.

    Raises:
        CheckpointError: it could not be written.
    """
    unfinished = path.with_name(f".{path.name}")
    try:
        write(unfinished)
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except Exception as error:  # safetensors has errors of its own
        unfinished.unlink(missing_ok=True)
        raise CheckpointError(f"{path} could not be written ({error})") from error


def seed(number: int, rank: int) -> None:
    """Seed the random generators of this process, for reward functions that draw."""
    import numpy as np

    random.seed(f"{number} {rank}")
    np.random.seed((number + 7919 * rank) % 2**32)
    torch.manual_seed(number + 7919 * rank)


def _json(value: Any) -> Write:
    return lambda path: path.write_text(json.dumps(value))


def tensors_to(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Tensors by name as one safetensors file."""
    from safetensors.torch import save_file

    save_file({name: t.detach().contiguous().cpu() for name, t in tensors.items()}, str(path))


def tensors_from(path: Path) -> dict[str, Tensor]:
    """Tensors of a safetensors file.

    Raises:
        CheckpointError: it can't be read.
    """
    from safetensors.torch import load_file

    try:
        found: dict[str, Tensor] = load_file(str(path))
    except Exception as error:  # safetensors has errors of its own
        text = str(error).split("\n")[0]
        raise CheckpointError(
            f"{path}: can't be read ({text}); remove this checkpoint to resume from an older one"
        ) from error
    return found


def read_state(place: Path) -> State:
    """What a checkpoint says of the run.

    Raises:
        CheckpointError: it can't be read, or it is of another format.
    """
    about = _read_json(place / "state.json")
    if about.get("format") != FORMAT:
        raise CheckpointError(
            f"{place} has format {about.get('format')!r}, expected {FORMAT}: it was written by "
            "another version of rlproof"
        )
    return State(int(about["step"]), about["sizes"], about["config"])


def restore(
    place: Path, parameters: Mapping[str, nn.Parameter], optimizer: torch.optim.Optimizer
) -> None:
    """Put weights and optimizer back as they were.

    Raises:
        CheckpointError: a file can't be read, or it is of another model.
    """
    fill(parameters, tensors_from(place / "weights.safetensors"), place)
    moments = tensors_from(place / "optimizer.safetensors")
    for key, tensor in moments.items():
        name, _, field = key.rpartition("::")
        if name not in parameters:
            raise CheckpointError(f"{place}: optimizer state of {name}, which is not trained here")
        parameter = parameters[name]
        scalar = field == "step"
        optimizer.state[parameter][field] = tensor if scalar else as_shards(tensor, parameter)


def fill(parameters: Mapping[str, nn.Parameter], tensors: Mapping[str, Tensor], what: Path) -> None:
    """Copy tensors into parameters of the same names.

    Raises:
        CheckpointError: names or shapes differ.
    """
    if set(parameters) != set(tensors):
        odd = sorted(set(parameters) ^ set(tensors))
        raise CheckpointError(
            f"{what} is of another model: {len(odd)} parameters differ, such as {odd[0]}; expected "
            "the model and the LoRA settings that the run began with"
        )
    with torch.no_grad():
        for name, parameter in parameters.items():
            if parameter.shape != tensors[name].shape:
                raise CheckpointError(
                    f"{what} is of another model: {name} is {tuple(tensors[name].shape)} there "
                    f"and {tuple(parameter.shape)} here"
                )
            parameter.copy_(as_shards(tensors[name], parameter))


def moments_of(
    parameters: Mapping[str, nn.Parameter], optimizer: torch.optim.Optimizer
) -> dict[str, Tensor]:
    """The optimizer's state by `name::field`."""
    return {
        f"{name}::{field}": torch.as_tensor(value)
        for name, parameter in parameters.items()
        for field, value in optimizer.state.get(parameter, {}).items()
        if value is not None
    }


def generators(engine: Mapping[str, Any]) -> dict[str, Any]:
    """The random generators of this process and the state of its sampler, for JSON."""
    import numpy as np

    kind, keys, *rest = np.random.get_state(legacy=True)
    found: dict[str, Any] = {
        "python": random.getstate(),
        "numpy": [kind, np.asarray(keys).tolist(), *rest],
        "torch": torch.get_rng_state().numpy().tobytes(),
        "engine": dict(engine),
    }
    if torch.cuda.is_available():
        found["cuda"] = [state.numpy().tobytes() for state in torch.cuda.get_rng_state_all()]
    return _packed(found)  # type: ignore[no-any-return]


def restore_generators(place: Path, rank: int) -> dict[str, Any]:
    """Set the random generators of this process; the state of its sampler.

    Raises:
        CheckpointError: it can't be read, or the run had fewer processes.
    """
    import numpy as np

    found = _unpacked(_read_json(place / f"rank-{rank}.json"))
    version, inner, gauss = found["python"]
    random.setstate((version, tuple(inner), gauss))
    np.random.set_state(tuple(found["numpy"]))
    torch.set_rng_state(_bytes(found["torch"]))
    if "cuda" in found and torch.cuda.is_available():
        torch.cuda.set_rng_state_all([_bytes(state) for state in found["cuda"]])
    return dict(found["engine"])


def _bytes(raw: bytes) -> Tensor:
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8)


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        text = getattr(error, "strerror", None) or str(error)
        raise CheckpointError(
            f"{path}: can't be read ({text}); remove this checkpoint to resume from an older one"
        ) from None


def _packed(value: Any) -> Any:
    """Bytes as base64, for JSON."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {key: _packed(one) for key, one in value.items()}
    return [_packed(one) for one in value] if isinstance(value, list | tuple) else value


def _unpacked(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"base64"}:
            return base64.b64decode(value["base64"])
        return {key: _unpacked(one) for key, one in value.items()}
    return [_unpacked(one) for one in value] if isinstance(value, list) else value
