"""What a run is: the sections of run.toml, each a frozen dataclass with its defaults.

`load` reads a file, `TrainConfig.of` a table. Every wrong value is a ConfigError that names it,
what was expected, and the nearest name where a key is unknown.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from rlproof.errors import ConfigError
from rlproof.space.objective import Objective
from rlproof.space.validity import ObjectiveError
from rlproof.train.sampling import Sampling
from rlproof.train.settings import built, changed, named

SCHEDULES = ("constant", "linear", "cosine")
DTYPES = ("float32", "bfloat16")
LOGGERS = ("jsonl", "tensorboard", "trackio", "wandb")
OPTIMIZERS = ("adamw", "sgd")


@dataclass(frozen=True, slots=True)
class Run:
    """The run as a whole."""

    folder: str
    """Where everything is written: checkpoints, metrics, records, the final model."""
    steps: int = 100
    """Steps; each samples once and updates `minibatches` × `epochs` times."""
    seed: int = 0
    """Of the order of the prompts, the sampling, and the weights of a fresh model."""
    device: str = "auto"
    """`auto`, `cpu`, `cuda`, …: where the model is."""


@dataclass(frozen=True, slots=True)
class Model:
    """The model and its tokenizer. One of `path` and `config` is given."""

    path: str | None = None
    """A folder, or a name on the Hugging Face hub."""
    config: str | Mapping[str, Any] | None = None
    """A transformers configuration for fresh random weights: a JSON file, or a table that has
    `model_type`."""
    tokenizer: str | None = None
    """A folder or name; the default is the model's own."""
    chat_template: str | None = None
    """A file with a Jinja template that replaces the tokenizer's."""
    dtype: str = "float32"
    """`bfloat16` computes in bfloat16 with float32 master weights and a float32 optimizer."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, more time."""
    attention: str | None = None
    """The attention implementation of transformers, such as `sdpa`; its default otherwise."""
    trust_remote_code: bool = False
    """Whether code that comes with the model may run."""


@dataclass(frozen=True, slots=True)
class Lora:
    """Low-rank adapters by peft; the base model stays as it is and is the reference."""

    rank: int = 0
    """0 trains all weights."""
    alpha: float = 32.0
    """The update is scaled by alpha/rank."""
    targets: str | tuple[str, ...] = "all-linear"
    """Names of the modules that get an adapter."""


@dataclass(frozen=True, slots=True)
class Data:
    """The prompts. One of `path` and `dataset` is given."""

    path: str | None = None
    """A JSONL file, one object a line."""
    dataset: str | None = None
    """A name for `datasets.load_dataset`, or a folder that `save_to_disk` wrote."""
    split: str = "train"
    """The split of the dataset."""
    prompt: str = "prompt"
    """The column with the prompt: text, or a list of messages for the chat template. The other
    columns go to the reward functions."""
    shuffle: bool = True
    """A new order in every pass over the prompts; without it, the order of the file."""
    too_long: str = "error"
    """A prompt that with `sampling.max_tokens` exceeds the context: `error`, or `drop` it (the
    number of those is printed)."""


@dataclass(frozen=True, slots=True)
class Rewards:
    """What is rewarded."""

    functions: tuple[str, ...] = ()
    """`module:function`, looked for beside the file too; the signature is TRL's."""
    weights: tuple[float, ...] | None = None
    """One for each function; 1 without."""
    timeout: float = 60.0
    """Seconds that one function may take for one batch."""


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """What samples. An engine of your own, such as vLLM in this process, goes to `Trainer`."""

    kind: str = "local"
    """`local`: the model itself, in this process. `server`: an OpenAI-compatible server that takes
    weights as vLLM does in development mode."""
    url: str | None = None
    """Where the server is."""
    model: str | None = None
    """What the server calls the model."""
    logprobs: str = "raw"
    """What the server's log-probs are of: `raw`, the softmax at temperature 1, or `drawn`, what is
    drawn from (vLLM's `--logprobs-mode processed_logprobs`)."""
    weights: str | None = None
    """A folder through which weights go to the server."""
    timeout: float = 600.0
    """Seconds for one request."""


@dataclass(frozen=True, slots=True)
class Turns:
    """Several turns with an environment, which is 0 in the mask of the loss."""

    environment: str | None = None
    """`module:function`; it is given a `rlproof.train.rollout.turns.Turn` and gives text, token
    ids, or None to end the row."""
    turns: int = 8
    """Turns of the policy; `sampling.max_tokens` holds for each."""
    tokens: int = 4096
    """Tokens of a completion, those of the environment included."""


@dataclass(frozen=True, slots=True)
class Batch:
    """How many completions, and how they are cut into updates."""

    prompts: int = 8
    """Prompts a step, over all processes."""
    group: int = 8
    """Completions a prompt, G."""
    minibatches: int = 1
    """Updates in one pass over the completions of a step; each takes whole groups."""
    epochs: int = 1
    """Passes over the completions of a step."""
    micro: int | None = None
    """Rows of one forward and backward pass, of one process. Without, a single process on a CPU
    takes whole groups of about 50 MB, others all rows. The gradient does not depend on it."""


@dataclass(frozen=True, slots=True)
class Optimizer:
    """The optimizer and its learning rate."""

    name: str = "adamw"
    """`adamw` or `sgd`."""
    lr: float = 1e-6
    """The learning rate at its highest."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Of AdamW; the first is the momentum of SGD."""
    eps: float = 1e-8
    """Of AdamW."""
    weight_decay: float = 0.0
    """Decoupled decay of matrices; vectors are left alone."""
    schedule: str = "constant"
    """`constant`, `linear` or `cosine`, both down to `final` × lr at the last step."""
    warmup: int = 0
    """Steps of linear warm-up."""
    final: float = 0.0
    """Share of the learning rate that is left at the end."""
    clip_norm: float | None = 1.0
    """Bound on the norm of the gradient of an update; no bound in TOML is 0."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a run can be resumed from."""

    every: int = 50
    """Steps between checkpoints; one more is written at the end. 0 writes the last one only."""
    keep: int = 2
    """How many are kept."""
    export: bool = False
    """Whether each checkpoint has the model in the format of transformers too; the last one is
    always in `model/` of the run's folder."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """Where metrics go; metrics.jsonl in the run's folder is always written."""

    to: tuple[str, ...] = ("jsonl",)
    """Any of `jsonl`, `tensorboard`, `trackio`, `wandb`."""
    project: str = "rlproof"
    """The project of trackio and wandb."""
    entropy: int = 5
    """Steps between measurements of the policy's entropy, where the objective does not need it;
    0 measures it with the records only."""
    completions: int = 0
    """Completions of each step that are written to completions.jsonl."""


@dataclass(frozen=True, slots=True)
class Record:
    """What `rlproof inspect` can judge afterwards: steps.rlproof.jsonl in the run's folder."""

    every: int = 20
    """Steps between records; 0 records nothing."""
    check_first_step: bool = False
    """Judge the first step before it is trained on, and refuse to go on with an error."""


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """A whole run.

    Raises:
        ConfigError: a value that is out of its range, or two that contradict each other.
    """

    run: Run
    model: Model = field(default_factory=Model)
    lora: Lora = field(default_factory=Lora)
    data: Data = field(default_factory=Data)
    rewards: Rewards = field(default_factory=Rewards)
    objective: Mapping[str, Any] = field(default_factory=dict)
    """`recipe`, a name of `rlproof.space.published`; `length`, the constant of a constant
    aggregation (`sampling.max_tokens` without); any coordinate of `rlproof.space` besides."""
    sampling: Sampling = field(default_factory=Sampling)
    engine: EngineSettings = field(default_factory=EngineSettings)
    turns: Turns = field(default_factory=Turns)
    batch: Batch = field(default_factory=Batch)
    optimizer: Optimizer = field(default_factory=Optimizer)
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    metrics: Metrics = field(default_factory=Metrics)
    record: Record = field(default_factory=Record)

    def __post_init__(self) -> None:
        for name, (holds, expected) in _RANGES.items():
            section, key = name.split(".")
            value = getattr(getattr(self, section), key)
            if value is not None and not holds(value):
                raise ConfigError(f"{named(section, key)} is {value!r}, expected {expected}")
        _check_together(self)
        self.resolved()

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> TrainConfig:
        """From nested tables, as TOML gives them.

        Raises:
            ConfigError: see the class.
        """
        return built(cls, table, "")

    def but(self, **sections: Mapping[str, Any]) -> TrainConfig:
        """The same run with some settings changed: `config.but(run={"steps": 3})`."""
        values: dict[str, Any] = {}
        for name, table in sections.items():
            now = getattr(self, name)
            plain = isinstance(now, Mapping)
            values[name] = _merged(now, table) if plain else changed(now, table, name)
        return replace(self, **values)

    def resolved(self) -> Objective:
        """The objective that is meant, with the temperature of the sampling.

        Raises:
            ConfigError: an unknown recipe or coordinate, or coordinates that contradict.
        """
        return objective_of(self.objective, self.sampling)

    @property
    def length(self) -> float:
        """The constant L of the constant aggregations, tokens."""
        return float(self.objective.get("length", self.sampling.max_tokens))

    @property
    def rows(self) -> int:
        """Completions a step, over all processes."""
        return self.batch.prompts * self.batch.group

    @property
    def updates(self) -> int:
        """Updates of the weights between two samplings."""
        return self.batch.epochs * self.batch.minibatches

    def plain(self) -> dict[str, Any]:
        """As nested tables that JSON can hold."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}


def objective_of(table: Mapping[str, Any], sampling: Sampling) -> Objective:
    """The objective of a table: a recipe and the coordinates that differ from it.

    Raises:
        ConfigError: an unknown recipe or coordinate, coordinates that contradict each other, or a
            sampling whose distribution the objective can't score.
    """
    from rlproof.space.published import OBJECTIVES
    from rlproof.space.recipes import normalise

    coordinates = {key: table[key] for key in table if key not in ("length", "recipe")}
    base = Objective()
    if "recipe" in table:
        try:
            base = OBJECTIVES[normalise(str(table["recipe"]))].objective
        except KeyError as error:
            raise ConfigError(f"[objective] recipe: {error.args[0]}") from None
    try:
        made = changed(base, coordinates, "objective")
        if made.but(temperature=1.0) != base or "recipe" not in table:
            made = made.but(name="custom")
        return sampling.scored_by(made)
    except ObjectiveError as error:
        raise ConfigError(f"[objective] {error}") from None


def load(path: str | Path) -> TrainConfig:
    """The run that a file describes; relative paths start at its folder.

    Raises:
        ConfigError: the file can't be read as TOML, or see `TrainConfig`.
    """
    path = Path(path)
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}; expected a TOML file") from None
    except (ValueError, RecursionError) as error:  # a number may have too many digits
        raise ConfigError(f"{path}: can't be read as TOML ({error})") from None
    try:
        return beside(TrainConfig.of(table), path.parent.absolute())
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def beside(config: TrainConfig, root: Path) -> TrainConfig:
    """The same run with its relative paths taken from a folder."""

    def there(text: str | None, always: bool = False) -> str | None:
        if not isinstance(text, str) or not (always or os.path.exists(root / text)):
            return text
        return str(root / text)

    model, data = config.model, config.data
    source = there(model.config, True) if isinstance(model.config, str) else model.config
    return replace(
        config,
        run=replace(config.run, folder=str(root / config.run.folder)),
        model=replace(
            model,
            path=there(model.path),
            config=source,
            tokenizer=there(model.tokenizer),
            chat_template=there(model.chat_template, True),
        ),
        data=replace(data, path=there(data.path, True), dataset=there(data.dataset)),
    )


def _merged(now: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    """A table with another one over it, tables in it alike."""
    made = dict(now)
    for key, value in table.items():
        both = isinstance(value, Mapping) and isinstance(now.get(key), Mapping)
        made[key] = _merged(now[key], value) if both else value
    return made


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if hasattr(value, "__dataclass_fields__"):
        return _plain(asdict(value))
    return [_plain(one) for one in value] if isinstance(value, tuple | list) else value


def _least(low: float) -> tuple[Callable[[Any], bool], str]:
    return (lambda value: value >= low), f"{low:g} or more"


def _above(low: float) -> tuple[Callable[[Any], bool], str]:
    return (lambda value: value > low), f"a number above {low:g}"


def _one_of(names: tuple[str, ...]) -> tuple[Callable[[Any], bool], str]:
    return (lambda value: value in names), f"one of {', '.join(names)}"


def _share(value: float) -> bool:
    return 0 <= value < 1


_RANGES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "run.steps": _least(1),
    "run.folder": (bool, "a folder"),
    "model.dtype": _one_of(DTYPES),
    "lora.rank": _least(0),
    "lora.alpha": _above(0),
    "data.too_long": _one_of(("error", "drop")),
    "rewards.timeout": _above(0),
    "engine.kind": _one_of(("local", "server")),
    "engine.logprobs": _one_of(("raw", "drawn")),
    "engine.timeout": _above(0),
    "turns.turns": _least(1),
    "turns.tokens": _least(1),
    "batch.prompts": _least(1),
    "batch.group": _least(1),
    "batch.minibatches": _least(1),
    "batch.epochs": _least(1),
    "batch.micro": _least(1),
    "optimizer.name": _one_of(OPTIMIZERS),
    "optimizer.lr": _least(0),
    "optimizer.betas": (lambda value: all(map(_share, value)), "two numbers from 0 to below 1"),
    "optimizer.eps": _above(0),
    "optimizer.weight_decay": _least(0),
    "optimizer.schedule": _one_of(SCHEDULES),
    "optimizer.warmup": _least(0),
    "optimizer.final": (lambda value: 0 <= value <= 1, "a number from 0 to 1"),
    "optimizer.clip_norm": _least(0),
    "checkpoint.every": _least(0),
    "checkpoint.keep": _least(1),
    "metrics.to": (lambda value: set(value) <= set(LOGGERS), f"any of {', '.join(LOGGERS)}"),
    "metrics.completions": _least(0),
    "metrics.entropy": _least(0),
    "record.every": _least(0),
}  # fmt: skip
"""What a value must be beyond its kind, and how a message says it."""


def _check_together(config: TrainConfig) -> None:
    """Settings that contradict each other."""
    batch, rewards = config.batch, config.rewards
    if batch.prompts % batch.minibatches:
        raise ConfigError(
            f"[batch] minibatches is {batch.minibatches}, which does not divide "
            f"{batch.prompts} prompts"
        )
    if rewards.weights is not None and len(rewards.weights) != len(rewards.functions):
        if rewards.functions:
            raise ConfigError(
                f"[rewards] weights has {len(rewards.weights)} numbers for "
                f"{len(rewards.functions)} functions; expected one for each"
            )
    for section, first, second in (("model", "path", "config"), ("data", "path", "dataset")):
        part = getattr(config, section)
        if getattr(part, first) is not None and getattr(part, second) is not None:
            raise ConfigError(f"[{section}] has {first} and {second}; expected one of them")
    length = config.objective.get("length", 1)
    if isinstance(length, bool) or not isinstance(length, int | float) or not length > 0:
        raise ConfigError(f"[objective] length is {length!r}, expected a number of tokens above 0")
    grouped = config.resolved().aggregation == "prompt-mean"
    if grouped and batch.micro is not None and batch.micro % batch.group:
        raise ConfigError(
            f"[batch] micro is {batch.micro}: with aggregation prompt-mean it must be a multiple "
            f"of group = {batch.group}, since a prompt's tokens are counted together"
        )
