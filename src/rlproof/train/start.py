"""What a run begins with: its parts from the settings, and whether its folder is as expected."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlproof.errors import ConfigError, TrainError
from rlproof.space.objective import Objective
from rlproof.train import checkpoint, data, policy
from rlproof.train.atomic import tidy
from rlproof.train.config import TrainConfig
from rlproof.train.distributed import Ranks
from rlproof.train.policy import Policy
from rlproof.train.prepare import needs_reference
from rlproof.train.rewards import RewardFunction, RewardFunctions, named_function


def objective(config: TrainConfig) -> Objective:
    """The objective with the weights of the rewards.

    Raises:
        ConfigError: the weights are given twice, and differ.
    """
    meant, weights = config.resolved(), config.rewards.weights
    if weights is None:
        return meant
    own = meant.advantage.reward_weights
    if own is not None and own != weights:
        raise ConfigError(
            f"[rewards] weights is {weights} and [objective.advantage] reward_weights {own}; "
            "expected one of them"
        )
    return meant.but(advantage=replace(meant.advantage, reward_weights=weights))


def functions(
    config: TrainConfig, given: Sequence[RewardFunction] | None, root: Path | None
) -> RewardFunctions:
    """The reward functions: those given, or those that the settings name.

    Raises:
        ConfigError: there is none, one can't be found, or the weights are not one for each.
    """
    named = config.rewards.functions
    found = list(given) if given is not None else [named_function(n, root) for n in named]
    weights = config.rewards.weights
    if weights is not None and len(weights) != len(found):
        raise ConfigError(
            f"[rewards] weights has {len(weights)} numbers for {len(found)} functions; expected "
            "one for each"
        )
    return RewardFunctions(found, config.rewards.timeout)


def made_policy(config: TrainConfig, model: Any, tokenizer: Any) -> Policy:
    """The policy: of a model that is given, or of the settings.

    Raises:
        ConfigError: only one of model and tokenizer is given, or see `rlproof.train.policy`.
    """
    if (model is None) != (tokenizer is None):
        raise ConfigError("model and tokenizer go together; expected both, or settings for both")
    return policy.load(config) if model is None else policy.made(config, model, tokenizer)


def prompts(
    config: TrainConfig, own: Policy, given: Iterable[Mapping[str, Any]] | None, longest: int
) -> data.Prompts:
    """The prompts: those given, or those of the settings; `longest` tokens may follow each.

    Raises:
        DataError: there is none, or one can't be used.
    """
    rows = data.rows_of(config.data) if given is None else given
    context = own.context
    room = None if context is None else context - longest
    return data.prompts_of(rows, config.data, own.tokenizer, room, config.run.seed)


def check_share(config: TrainConfig, group: Ranks) -> None:
    """Refuse prompts that processes and minibatches don't divide.

    Raises:
        ConfigError: they don't.
    """
    pieces = group.world * config.batch.minibatches
    if config.batch.prompts % pieces:
        raise ConfigError(
            f"[batch] prompts is {config.batch.prompts}, which {group.world} processes and "
            f"{config.batch.minibatches} minibatches don't divide; expected a multiple of {pieces}"
        )


def found(folder: Path, resume: bool, group: Ranks) -> Path | None:
    """The checkpoint to resume from; None for a run from its start.

    Raises:
        ConfigError: there is nothing to resume, or there is a run and it is not to be resumed.
    """
    if group.main:
        tidy(checkpoint.folder_of(folder))
    group.wait()
    there = checkpoint.saved(folder)
    begun = bool(there) or (folder / "metrics.jsonl").exists()
    group.wait()  # nobody writes before everybody has looked
    if resume and not begun:
        raise ConfigError(f"{folder} has no run to resume; start it without --resume")
    if not resume and begun:
        raise ConfigError(
            f"{folder} has a run already; go on with it (--resume), or choose another [run] folder"
        )
    return there[-1] if there else None


def keep_initial(
    own: Policy, how: Objective, config: TrainConfig, resumed: bool, given: bool, group: Ranks
) -> None:
    """Keep initial weights that can't be loaded again, and a reference, where one is needed.

    A model that was given, or that is fresh, can't be loaded again when the run is resumed.
    """
    everything = dict(own.model.named_parameters())
    path = Path(config.run.folder) / "initial.safetensors"
    needed = needs_reference(how) or own.adapted
    if resumed and path.exists():
        checkpoint.fill(everything, checkpoint.tensors_from(path), path)
    elif needed and group.main and (given or config.model.path is None):
        checkpoint.write_file(path, lambda place: checkpoint.tensors_to(place, everything))
    if needs_reference(how) and not own.adapted:
        own.reference = copy.deepcopy(own.scorer).eval().requires_grad_(False)


_FREE = {"run": ("steps", "device", "folder"), "checkpoint": (), "metrics": (), "record": ()}
"""Sections that may change when a run is resumed: the keys named, or all of them."""


def check_same(before: Mapping[str, Any], config: TrainConfig) -> None:
    """Refuse to resume a run whose settings are others.

    Where and how often things are written may change, and the number of steps, if the learning
    rate does not depend on it.

    Raises:
        TrainError: the first setting that differs.
    """
    for section, values in json.loads(json.dumps(config.plain())).items():
        old, free = before.get(section, {}), _FREE.get(section)
        if free == ():
            continue
        for key in sorted(set(values) | set(old)):
            of_rate = key == "steps" and config.optimizer.schedule != "constant"
            if key in (free or ()) and not of_rate:
                continue
            if values.get(key) != old.get(key):
                raise TrainError(
                    f"[{section}] {key} is {values.get(key)!r}, and was {old.get(key)!r} when the "
                    "run began; a resumed run goes on as it was: change it back, or start another"
                )
