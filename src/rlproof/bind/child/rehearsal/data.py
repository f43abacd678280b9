"""Data that stands in: loaders, batches by key or attribute, rows as dictionaries.

What a key holds follows from its name. A key whose name says nothing is refused.

Shapes: B rows, L slots, C of the completion.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rlproof.bind.child.load import UnavailableError
from rlproof.bind.child.rehearsal.policy import ACTIONS, FEATURES
from rlproof.bind.child.rehearsal.recorder import Enough, Recorder
from rlproof.bind.child.rehearsal.sampling import stand_for
from rlproof.bind.child.rehearsal.settings import (
    COMPLETION,
    EOS,
    LENGTH,
    PROMPT,
    NoStandInError,
    by_prompt,
    draw,
    generator,
    prompt_ids,
    seed_of,
)  # fmt: skip
from rlproof.read.names import Slot, objective_slot, words
from rlproof.read.uses import GIVING

_ROUNDS = 3  # how often a loader gives something
_WORDS_OF_IDS = {"ids", "tokens", "sequences", "sequence", "seqs", "labels", "responses"}
_GROUP_WORDS = {"uid", "uids", "task", "group", "groups", "index", "problem", "question"}
Use = dict[str, Any]


class Data:
    """Makes columns and rows for one handing out of data."""

    def __init__(self, recorder: Recorder, salt: int = 0) -> None:
        self.recorder = recorder
        self.settings = recorder.settings
        self.salt = salt

    @property
    def places(self) -> list[int]:
        """Which row stands where."""
        settings = self.settings
        if len(settings.order) == settings.rows:
            return settings.order
        groups = settings.ordered(settings.rows // settings.group)
        return [g * settings.group + k for g in groups for k in range(settings.group)]

    def prompts(self) -> list[int]:
        """Numbers of the prompts that are handed out, in order."""
        return [p + 7 * self.salt for p in self.settings.ordered(self.settings.prompts)]

    def length(self, row: int) -> int:
        """How many tokens the completion of a row has."""
        return 3 + seed_of("length", row, self.salt) % (COMPLETION - 4)

    def ids(self, row: int) -> list[int]:
        """A prompt, a completion that ends, and what fills it up; no two rows are the same."""
        prompt = prompt_ids(row // self.settings.group + 7 * self.salt)
        count = self.length(row)
        words_ = [8 + seed_of("id", row, k, self.salt) % 52 for k in range(count - 1)]
        rest = [self.settings.pad] * (COMPLETION - count)
        return [*prompt, *words_, EOS, *rest]

    def value(self, row: int) -> float:
        """The reward, or the advantage, of a row."""
        match self.settings.values:
            case "zero":
                return 0.0
            case "one":
                return float(row == self.settings.marked)
            case "by prompt":
                return by_prompt(row // self.settings.group)
            case "flat" if row // self.settings.group % 2:
                return by_prompt(row // self.settings.group)
        size = round(0.3 + abs(draw("value", row)), 3)
        return size if seed_of("sign", row) % 2 else -size

    def column(self, name: str) -> Any:
        """What stands under a name: a tensor, row by row."""
        import torch

        parts, slot = words(name), objective_slot(name)
        made: Any = None
        if _is_prompt_ids(parts):
            made = torch.tensor([prompt_ids(p) for p in self.prompts()])
        elif set(parts) & {"prompts", "prompt", "questions", "queries"} and "mask" not in parts:
            if "response" not in parts and "responses" not in parts:
                return [stand_for(p) for p in self.prompts()]
        if made is None and set(parts) & {"completion", "response", "action"} and "ids" in parts:
            made = torch.tensor([self._known(row)[PROMPT:] for row in self.places])
        elif made is None and set(parts) & _WORDS_OF_IDS and "group" not in parts:
            made = torch.tensor([self._known(row) for row in self.places])
        elif made is None and set(parts) & {"states", "obs", "observations", "state"}:
            made = self._states()
        elif made is None and parts[-1] in ("actions", "action", "acts"):
            made = torch.tensor([seed_of("action", r, self.salt) % ACTIONS for r in self.places])
        elif made is None:
            made = self._of_slot(name, parts, slot)
        if made is None:
            raise UnavailableError(f"nothing is known that could stand in for `{name}`")
        return self.recorder.column(name, made)

    def _of_slot(self, name: str, parts: list[str], slot: Slot | None) -> Any:
        import torch

        if set(parts) & {"attention"}:
            return torch.ones(self.settings.rows, LENGTH, dtype=torch.long)
        if slot is Slot.MASK:
            self.recorder.used.add("width")
            return torch.tensor([self._mask(row, name) for row in self.places])
        if slot in (Slot.OLD, Slot.NEW, Slot.REF):
            return self._log_probs(name)
        if slot is Slot.ADVANTAGES:
            return self._advantages()
        if slot is Slot.REWARDS:
            return torch.tensor([self.value(row) for row in self.places])
        if slot is Slot.LENGTHS:
            return torch.tensor([self.length(row) for row in self.places])
        if slot is Slot.GROUP_IDS or set(parts) & _GROUP_WORDS:
            return torch.tensor([row // self.settings.group for row in self.places])
        return None

    def _known(self, row: int) -> list[int]:
        ids = self.ids(row)
        self.recorder.place.setdefault(tuple(ids), row)
        self.recorder.born.setdefault(tuple(ids), len(self.recorder.steps))
        return ids

    def _states(self) -> Any:
        import torch

        lines = [
            [round(draw("state", row, k, self.salt), 4) for k in range(FEATURES)]
            for row in self.places
        ]
        for row, line in zip(self.places, torch.tensor(lines).tolist(), strict=True):
            self.recorder.place.setdefault(tuple(line), row)
            self.recorder.born.setdefault(tuple(line), len(self.recorder.steps))
        return torch.tensor(lines)

    def _mask(self, row: int, name: str) -> list[float]:
        """1 on the completion; a second mask of a batch leaves some more out."""
        count, slots = self.length(row), self.settings.slots
        before = {"full": PROMPT, "shifted": PROMPT - 1}.get(self.settings.width, 0)
        line = [float(before <= k < before + count) for k in range(slots)]
        if set(words(name)) & {"tool", "tools", "env", "observation"}:
            for k in range(before, before + count - 1):
                line[k] = float(seed_of("tool", row, k) % 3 > 0)
        return line

    def _log_probs(self, name: str) -> Any:
        """Close to what the policy gives, so that few ratios are clipped."""
        import torch

        if "states" in self.recorder.used:
            lines = torch.full((self.settings.rows,), -1.7)
            noise = torch.randn(len(lines), generator=generator("logps", name))
            return (lines + 0.02 * noise)[torch.tensor(self.places)]
        self.recorder.used.add("width")
        ids = torch.tensor([self.ids(row) for row in range(self.settings.rows)])
        with torch.no_grad():
            watched, self.recorder.policy.trained = self.recorder.policy.trained, False
            lines = self.recorder.policy(ids).as_subclass(torch.Tensor)
            self.recorder.policy.trained = watched
        noise = torch.randn(lines.shape, generator=generator("logps", name, self.salt))
        lines = lines + 0.05 * noise
        return lines[torch.tensor(self.places)][:, -self.settings.slots :]

    def _advantages(self) -> Any:
        import torch

        self.recorder.used.add("advantages")
        flat = torch.tensor([self.value(row) for row in self.places])
        if self.settings.advantages == "column":
            return flat.unsqueeze(1)
        if self.settings.advantages == "token":
            self.recorder.used.add("width")
            return flat.unsqueeze(1).repeat(1, self.settings.slots)
        return flat

    def row(self, row: int) -> Row:
        """One trajectory."""
        return Row(self, row)


def _is_prompt_ids(parts: list[str]) -> bool:
    named = set(parts) & {"prompt", "prompts", "query", "queries", "question"}
    others = set(parts) & {"response", "responses", "completion", "mask", "group", "logps"}
    return bool(named) and bool(set(parts) & {"ids", "tokens"}) and not others


def _by_attribute(holder: Batch | Row, name: str) -> Any:
    """What is asked for as an attribute, by its key."""
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        return holder[name]
    except UnavailableError as error:
        raise NoStandInError(str(error)) from None


class Batch:
    """Columns by key or by attribute, each made when it is first asked for."""

    def __init__(self, data: Data, keys: list[str]) -> None:
        self.__dict__["_data"] = data
        self.__dict__["_keys"] = list(keys)
        self.__dict__["_made"] = {}

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            raise UnavailableError("the stand-in for a batch is asked by name alone")
        if key not in self._made:
            self._made[key] = self._data.column(key)
        return self._made[key]

    def __getattr__(self, name: str) -> Any:
        if name in ("batch", "non_tensor_batch", "tensors", "data"):
            return self
        return _by_attribute(self, name)

    def __setitem__(self, key: str, value: Any) -> None:
        self._made[key] = value

    def __setattr__(self, key: str, value: Any) -> None:
        self._made[key] = value

    def __contains__(self, key: str) -> bool:
        return key in self._made or key in self._keys

    def __len__(self) -> int:
        return int(self._data.settings.rows)

    def __iter__(self) -> Iterator[str]:
        """The names that the script asks for; a batch that is walked over has ids in any case."""
        names = dict.fromkeys([*self._keys, *self._made])
        if not any(set(words(name)) & _WORDS_OF_IDS for name in names):
            names["ids"] = None
        return iter(names)

    def keys(self) -> list[str]:
        """The names that the script asks for."""
        return list(self)

    def items(self) -> list[tuple[str, Any]]:
        """Names and columns; names that say nothing are left out."""
        found = []
        for key in self:
            try:
                found.append((key, self[key]))
            except (UnavailableError, NoStandInError):
                continue
        return found

    def values(self) -> list[Any]:
        """The columns."""
        return [value for _, value in self.items()]

    def get(self, key: str, default: Any = None) -> Any:
        """A column, or the default."""
        if key not in self:
            return default
        return self[key]

    def pop(self, key: str, *_: Any) -> Any:
        """A column, which stays."""
        return self[key]

    def to(self, *_: Any, **__: Any) -> Batch:
        """Stays where it is."""
        return self


class Row(dict[str, Any]):
    """One trajectory or example; its entries are made when they are first asked for."""

    def __init__(self, data: Data, number: int) -> None:
        super().__init__()
        self.__dict__["_data"] = data
        self.__dict__["_number"] = number

    def __missing__(self, key: str) -> Any:
        self[key] = value = _entry(self._data, self._number, key)
        return value

    def __getattr__(self, name: str) -> Any:
        return _by_attribute(self, name)

    def get(self, key: str, default: Any = None) -> Any:
        """The entry: it is always there."""
        del default
        return self[key]


def _entry(data: Data, row: int, key: str) -> Any:
    parts, slot = words(key), objective_slot(key)
    if slot in (Slot.REWARDS, Slot.ADVANTAGES):
        return data.value(row)
    if set(parts) & (_GROUP_WORDS | {"prompt"}) and set(parts) & {"id", "uid", "index", "group"}:
        return f"group {row // data.settings.group}"
    if set(parts) & {"prompt", "question", "query", "problem", "task", "messages"}:
        return stand_for(row // data.settings.group)
    if set(parts) & {"answer", "solution", "target", "truth", "completion", "response", "text"}:
        return f"answer {row}"
    if set(parts) & {"ids", "tokens"}:
        return data._known(row)
    raise UnavailableError(f"nothing is known that could stand in for `{key}` of a row")


class Loader:
    """Gives data a few times: iterated, by `next`, or by a call such as `sample`."""

    def __init__(self, recorder: Recorder, make: Any) -> None:
        self._recorder = recorder
        self._make = make
        self._given = 0

    def __iter__(self) -> Iterator[Any]:
        for _ in range(_ROUNDS):
            yield self._next()

    def __next__(self) -> Any:
        return self._next()

    def __len__(self) -> int:
        return _ROUNDS

    def _next(self) -> Any:
        if self._given > 2 * _ROUNDS:
            raise Enough
        self._given += 1
        return self._make(Data(self._recorder, self._given - 1))

    def __getattr__(self, name: str) -> Any:
        if name in GIVING:
            return lambda *_, **__: self._next()
        if name in ("dataset", "sampler"):
            return self
        if name in _MUTE:
            return lambda *_, **__: None
        raise NoStandInError(f"the stand-in for a loader has no `{name}`")


_MUTE = {"set_epoch", "put", "append", "add", "push", "clear", "step"}
