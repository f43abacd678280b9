"""Which stand-in a name gets: by its words, and by what the script does with it."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from rlproof.bind.child.load import Missing, UnavailableError
from rlproof.bind.child.rehearsal import objects
from rlproof.bind.child.rehearsal.data import Batch, Data, Loader
from rlproof.bind.child.rehearsal.policy import policy
from rlproof.bind.child.rehearsal.recorder import Recorder
from rlproof.bind.child.rehearsal.sampling import stand_for
from rlproof.bind.child.rehearsal.settings import (
    COMPLETION,
    LENGTH,
    PROMPT,
    NoStandInError,
    prompt_ids,
)
from rlproof.bind.child.standin import Tensors
from rlproof.read.names import Slot, objective_slot, words

_MODELS = {"model", "policy", "actor", "module", "net", "network", "lm", "llm", "student", "agent"}
_OTHERS = {"ref", "reference", "teacher", "base", "frozen", "sft", "initial", "old", "critic"}
_USED_AS_MODEL = {"generate", "parameters", "log_probs", "logprobs", "named_parameters"}
_MUTE = {"scheduler", "logger", "writer", "wandb", "tracker", "pbar", "progress", "metrics"}
_OPTIONS = {"args", "config", "cfg", "hparams", "settings", "options", "opts"}
_SCORES = {"tokens", "ids", "sequences", "labels"}


class Cast:
    """The stand-ins of one run; one object for one name."""

    def __init__(self, module: ModuleType, recorder: Recorder, uses: Mapping[str, Any]) -> None:
        self.module = module
        self.recorder = recorder
        self.uses = uses
        self.latest: Any = None
        """What the last call of the script's sampling gave."""
        self._made: dict[str, Any] = {}
        self._objects: dict[type, Any] = {}
        recorder.policy = policy(recorder, "policy", trained=True)

    def arguments(self, function: Callable[..., Any], skip: int = 0) -> dict[str, Any]:
        """A stand-in for every parameter that has no default."""
        found = {}
        for p in list(inspect.signature(function).parameters.values())[skip:]:
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or p.default is not p.empty:
                continue
            found[p.name] = self.of(p.name, p.annotation)
        return found

    def of(self, name: str, annotation: Any = None) -> Any:
        """The stand-in for a name.

        Raises:
            UnavailableError: neither its words nor its uses say what it is.
        """
        if name not in self._made:
            self._made[name] = self._make(name, annotation)
        return self._made[name]

    def _make(self, name: str, annotation: Any) -> Any:
        use, parts = self.uses.get(name, {}), set(words(name))
        attributes = set(use.get("attributes", []))
        if parts & {"optimizer", "optim", "opt", "optimiser"}:
            return self._optimizer()
        if parts & _MUTE:
            return objects.Mute()
        if parts & {"accelerator", "fabric"}:
            return objects.Accelerator()
        if parts & {"tokenizer", "tokeniser", "tok", "processor"}:
            return objects.Tokenizer(self.recorder.settings.pad)
        if parts & _OPTIONS:
            return self._options(annotation)
        if self._is_model(parts, attributes):
            other = parts & _OTHERS and not parts & {"policy", "actor"}
            return policy(self.recorder, name, trained=False) if other else self.recorder.policy
        if use.get("called"):
            return objects.score(self.recorder, name)
        if use.get("items") is not None:
            return self._walked(use)
        if use.get("keys"):
            return Batch(self._data(), self.uses["*"]["keys"])
        return self._value(name)

    def _is_model(self, parts: set[str], attributes: set[str]) -> bool:
        speaks = parts & _MODELS and not parts & {
            "name",
            "path",
            "reward",
            "config",
            "inputs",
            "id",
        }
        return bool(speaks or attributes & _USED_AS_MODEL)

    def _optimizer(self) -> Any:
        import torch

        return torch.optim.SGD(self.recorder.policy.parameters(), lr=0.1)

    def _options(self, annotation: Any) -> Any:
        """Settings of the class that the annotation names, if it can be made without arguments."""
        kind = annotation
        if isinstance(annotation, str):
            kind = self.module.__dict__.get(annotation.split("|")[0].strip())
        if inspect.isclass(kind) and dataclasses.is_dataclass(kind):
            try:
                return kind()
            except TypeError:
                pass
        return objects.Options(self.recorder.settings)

    def _data(self) -> Data:
        return Data(self.recorder)

    def _walked(self, use: Mapping[str, Any]) -> Any:
        """Something whose entries are taken one by one."""
        items = list(use["items"])
        if use.get("rows"):
            data = self._data()
            return [data.row(place) for place in data.places]
        return Loader(self.recorder, lambda data: self._item(data, items))

    def _item(self, data: Data, items: list[str]) -> Any:
        if len(items) > 1:
            return tuple(self._column(data, name) for name in items)
        use = self.uses.get(items[0], {})
        if use.get("rows"):
            settings = self.recorder.settings
            step = settings.group if settings.grouped else 1
            return [data.row(p * step) for p in settings.ordered(settings.prompts)]
        if use.get("keys"):
            return Batch(data, self.uses["*"]["keys"])
        return self._prompts(data)

    def _column(self, data: Data, name: str) -> Any:
        parts = set(words(name))
        if parts & {"prompts", "prompt", "questions", "queries"} and "mask" not in parts:
            return self._prompts(data)
        return data.column(name)

    def _prompts(self, data: Data) -> Any:
        import torch

        self.recorder.used.add("asked")
        numbers = data.prompts()
        if self.recorder.settings.asked == "text":
            return [stand_for(p) for p in numbers]
        ids = torch.tensor([prompt_ids(p) for p in numbers])
        if self.recorder.settings.asked == "ids":
            return ids
        return Tensors(input_ids=ids, attention_mask=torch.ones_like(ids))

    def _value(self, name: str) -> Any:
        import torch

        parts, slot = set(words(name)), objective_slot(name)
        if self.latest is not None:
            if parts & _SCORES and not parts & {"keep", "num", "max", "n"}:
                return self.latest
            if parts & {"attention", "mask"}:
                return torch.ones(self.recorder.settings.rows, LENGTH, dtype=torch.long)
        if parts & {"keep"}:
            return COMPLETION
        if parts & {"prompt", "context"} and parts & {"length", "len", "width"}:
            return PROMPT
        if parts & {"prompts", "questions", "queries", "prompt"} and "mask" not in parts:
            return self._prompts(self._data())
        if parts & {"states", "obs", "observations"}:
            self.recorder.used.add("states")
        number = slot in (Slot.CLIP, Slot.CLIP_LOW, Slot.CLIP_HIGH, Slot.BETA, Slot.GROUP_SIZE)
        if not number:
            try:
                return self._data().column(name)
            except (UnavailableError, NoStandInError):
                pass
        return objects.number(name, self.recorder.settings)

    # --- classes and globals ------------------------------------------------------------------

    def instance(self, kind: Any) -> Any:
        """The one object of a class of the script."""
        if kind not in self._objects:
            self._objects[kind] = self._instance(kind)
        return self._objects[kind]

    def _instance(self, kind: type) -> Any:
        """An object of a class of the script: as its `__init__` makes it, if that can be run.

        Attributes that it never sets are stood in for by their names.
        """
        made: dict[str, Any] = {}
        cast = self

        def missing(_: Any, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return cast.of(name)

        if not hasattr(kind, "__getattr__"):
            made["__getattr__"] = missing
        whole = type(kind.__name__, (kind,), made)
        init = kind.__init__ if "__init__" in kind.__dict__ else None  # type: ignore[misc]
        if init is None:
            return whole()
        try:
            return whole(**self.arguments(init, skip=1))
        except (UnavailableError, NoStandInError):
            return object.__new__(whole)

    def take_globals(self) -> None:
        """Put stand-ins where the script's own names are missing, and for what would be loaded."""
        for name, value in list(vars(self.module).items()):
            missing = isinstance(value, Missing)
            loads = missing or (inspect.isclass(value) and hasattr(value, "from_pretrained"))
            made: Any = None
            if (loads and "Tokenizer" in name) or name == "AutoProcessor":
                made = objects.FromPretrained(lambda: self.of("tokenizer"))
            elif loads and (name.startswith("AutoModel") or name.endswith("LM")):
                made = objects.FromPretrained(self._loaded)
            elif loads and name in ("GenerationConfig", "SamplingParams"):
                made = objects.namespace
            elif name == "Accelerator":
                made = objects.Accelerator
            elif missing and (name == "wandb" or (name.startswith("get_") and "schedule" in name)):
                made = objects.Mute()
            elif missing and name.islower() and set(words(name)) & (_MODELS | {"tokenizer"}):
                made = self.of(name)
            if made is not None:
                setattr(self.module, name, made)

    def _loaded(self) -> Any:
        """The first model that is loaded is the policy, the others are not trained."""
        if "loaded" not in self._made:
            self._made["loaded"] = self.recorder.policy
            return self.recorder.policy
        return policy(self.recorder, "policy", trained=False)
