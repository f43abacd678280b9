"""Other things that stand in: tokenizer, reward function, settings, accelerator, loggers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

from rlproof.bind.child.load import UnavailableError
from rlproof.bind.child.rehearsal.recorder import Recorder
from rlproof.bind.child.rehearsal.sampling import encoded, stand_for
from rlproof.bind.child.rehearsal.settings import (
    COMPLETION,
    EOS,
    LENGTH,
    PROMPT,
    NoStandInError,
    Settings,
    by_prompt,
    draw,
    prompt_of,
    seed_of,
)
from rlproof.bind.child.standin import Tensors
from rlproof.read.names import Slot, objective_slot, words

_TOKENS = {"<end>": EOS, "<pad>": 1}


class Tokenizer:
    """Knows its special tokens, the prompts of the stage, and ids as texts."""

    padding_side = "left"
    eos_token_id = EOS
    eos_token = "<end>"
    bos_token_id = None

    def __init__(self, pad: int) -> None:
        self.pad_token_id: int = pad

    @property
    def pad_token(self) -> str:
        """As a text."""
        return next((text for text, number in _TOKENS.items() if number == self.pad_token_id), "")

    @pad_token.setter
    def pad_token(self, text: str) -> None:
        self.pad_token_id = _TOKENS.get(text, self.pad_token_id)

    def __len__(self) -> int:
        return 128

    def __call__(self, texts: Any, **_: Any) -> Tensors:
        """Ids and mask of prompts."""
        import torch

        ids = torch.tensor([encoded(t) for t in ([texts] if isinstance(texts, str) else texts)])
        return Tensors(input_ids=ids, attention_mask=torch.ones_like(ids))

    def apply_chat_template(self, messages: Any, tokenize: bool = True, **more: Any) -> Any:
        """The text of the last message, or its ids."""
        text = messages if isinstance(messages, str) else messages[-1]["content"]
        if not tokenize:
            return text
        return self(text).input_ids if more.get("return_tensors") else encoded(text)

    def decode(self, ids: Any, **_: Any) -> str:
        """Ids as numbers; a row that begins with a prompt names it."""
        row = ids.tolist() if hasattr(ids, "tolist") else list(ids)
        number = prompt_of(row)
        said = " ".join(f"w{x}" for x in row)
        return f"{stand_for(number)} {said}" if number >= 0 else said

    def batch_decode(self, rows: Any, **more: Any) -> list[str]:
        """Each row as a text."""
        return [self.decode(row, **more) for row in rows]

    def __getattr__(self, name: str) -> Any:
        raise NoStandInError(f"the stand-in for the tokenizer has no `{name}`")


def score(recorder: Recorder, name: str) -> Callable[..., Any]:
    """A reward function: one number for each row that it is given, by what the row is.

    Where the script takes two things, the second is a mask of the completions.
    """

    def scored(*args: Any, **kwargs: Any) -> Any:
        import torch

        rows = _rows(args, kwargs)
        if rows is None:
            raise UnavailableError(f"the stand-in for `{name}` is given nothing with rows")
        values = [_value(recorder, i, row) for i, row in enumerate(rows)]
        for row, value in zip(rows, values, strict=True):
            recorder.rewarded[tuple(row) if isinstance(row, list) else (-1,)] = value
        recorder.used.add("score")
        shape = recorder.settings.score
        if shape == "list":
            return values
        if shape == "pair":
            return torch.tensor(values), _counted(recorder, rows)
        return torch.tensor(values) if shape == "row" else torch.tensor(values).unsqueeze(1)

    return scored


def _counted(recorder: Recorder, rows: list[Any]) -> Any:
    """1 on the completions of rows of ids, up to their ends: what is counted beside a score."""
    import torch

    width = {"full": LENGTH, "shifted": LENGTH - 1}.get(recorder.settings.width, COMPLETION)
    recorder.used.add("width")
    lines = []
    for row in rows:
        if not isinstance(row, list) or len(row) != LENGTH:
            raise UnavailableError("a score with a mask is given no rows of ids")
        told = row[PROMPT:]
        count = told.index(EOS) + 1 if EOS in told else len(told)
        line = [0.0] * PROMPT + [1.0] * count + [0.0] * (COMPLETION - count)
        lines.append(line[LENGTH - width :])
    return torch.tensor(lines)


def _rows(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
    import torch

    found = None
    for given in (*args, *kwargs.values()):
        if torch.is_tensor(given) and given.dim() == 2 and not given.is_floating_point():
            return [list(row) for row in given.tolist()]
        if isinstance(given, list) and given and found is None:
            found = [row.tolist() if torch.is_tensor(row) else row for row in given]
    return found


def _value(recorder: Recorder, place: int, row: Any) -> float:
    settings = recorder.settings
    match settings.values:
        case "zero":
            return 0.0
        case "one":
            return float(place == settings.marked)
        case "by prompt":
            return by_prompt(_prompt(row))
    size = round(0.3 + abs(draw("value", _text(row))), 3)
    return size if seed_of("sign", _text(row)) % 2 else -size


def _text(row: Any) -> str:
    return " ".join(map(str, row)) if isinstance(row, list) else str(row)


def _prompt(row: Any) -> int:
    """Which prompt a row is an answer to."""
    if isinstance(row, list) and row and isinstance(row[0], int):
        number = prompt_of(row)
    else:
        digits = [part for part in str(row).split() if part.isdigit()]
        number = int(digits[0]) if str(row).startswith("question") and digits else -1
    if number < 0:
        raise UnavailableError("the prompt of a completion can't be told")
    return number


class Options:
    """Settings by attribute or key, each by its name; what a name doesn't tell is refused."""

    def __init__(self, stage: Settings) -> None:
        self.__dict__["_stage"] = stage

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return number(name, self._stage, self)

    def __getitem__(self, name: str) -> Any:
        return number(name, self._stage, self)

    def get(self, name: str, default: Any = None) -> Any:
        """The default, where there is one."""
        return number(name, self._stage, self) if default is None else default


_NEUTRAL = {"top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0,
            "no_repeat_ngram_size": 0, "min_new_tokens": 0}  # fmt: skip


def number(name: str, stage: Settings, options: Any = None) -> Any:
    """A setting by its name.

    Raises:
        UnavailableError: the name does not tell what it is.
    """
    parts, slot = set(words(name)), objective_slot(name)
    if slot is Slot.GROUP_SIZE:
        return stage.group
    if name in _NEUTRAL:
        return _NEUTRAL[name]
    if slot in (Slot.CLIP, Slot.CLIP_LOW, Slot.CLIP_HIGH):
        return 0.2
    if slot is Slot.BETA or parts & {"entropy"}:
        return stage.weight
    if slot is Slot.TEMPERATURE or "temperature" in parts:
        return 0.7
    if parts & {"lr", "rate"}:
        return 1e-3
    if parts & {"eps", "epsilon"}:
        return 1e-4
    if parts & {"micro", "mini", "minibatch", "batch", "chunk"} and parts & {"size", "bs", "micro"}:
        return 2 if parts & {"micro", "device"} else 8
    if parts & {"accumulation", "accumulate", "accum"}:
        return 2
    if parts & {"epochs", "iterations", "epoch", "mu", "steps", "updates"}:
        return 2
    if parts & {"length", "tokens", "len"}:
        return COMPLETION
    if parts & {"device"}:
        return "cpu"
    if parts & {"norm", "seed"}:
        return 1.0 if "norm" in parts else 0
    if parts & {"use", "do", "enable", "is", "log", "debug", "verbose"}:
        return False
    if parts & {"actor", "rollout", "config", "algorithm", "trainer", "args", "cfg", "training"}:
        if options is not None:
            return options
    raise NoStandInError(f"nothing is known that could stand in for the setting `{name}`")


class Accelerator:
    """As much of an accelerator as a loop on one device uses."""

    device = "cpu"
    is_main_process = is_local_main_process = sync_gradients = True
    num_processes = 1
    process_index = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        """Takes what the real one takes."""

    def prepare(self, *given: Any) -> Any:
        """What it is given."""
        return given[0] if len(given) == 1 else given

    def backward(self, loss: Any, **__: Any) -> None:
        """The backward pass."""
        loss.backward()

    def unwrap_model(self, model: Any, **_: Any) -> Any:
        """The same model."""
        return model

    def gather(self, value: Any) -> Any:
        """The values of the one process."""
        return value

    gather_for_metrics = reduce = setup = setup_dataloaders = gather

    def clip_grad_norm_(self, parameters: Any, size: float, *_: Any) -> Any:
        """As torch does."""
        import torch

        return torch.nn.utils.clip_grad_norm_(parameters, size)

    def accumulate(self, *_: Any) -> Any:
        """Every step is one."""
        return nullcontext()

    no_sync = autocast = accumulate

    def log(self, *_: Any, **__: Any) -> None:
        """Says nothing."""

    print = wait_for_everyone = free_memory = end_training = log


class Mute:
    """A logger, a scheduler, a progress bar: takes everything and does nothing."""

    def __call__(self, *_: Any, **__: Any) -> Mute:
        """Itself."""
        return self

    def __getattr__(self, name: str) -> Mute:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __enter__(self) -> Mute:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to end."""


class FromPretrained:
    """A class of transformers: whatever it loads is what stands in for it."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def from_pretrained(self, *_: Any, **__: Any) -> Any:
        """The stand-in."""
        return self._make()

    from_config = from_pretrained


def namespace(*_: Any, **fields: Any) -> SimpleNamespace:
    """Sampling settings: what they are made with."""
    return SimpleNamespace(**fields)
